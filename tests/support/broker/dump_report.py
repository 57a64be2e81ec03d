"""What DumpLogSegments printed, file by file."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.broker.java_tools import ToolOutput

# Payloads are printed as they are and may break lines: only whole, typical lines count.
_FILE = re.compile(r"Dumping (.+)")
_BATCH = re.compile(r"(?:baseOffset|offset): \d+ .* isvalid: (?:true|false)")
_RECORD = re.compile(
    r"\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) (?:sequence: (-?\d+))?"
)
_INDEX_ENTRY = re.compile(r"offset: (\d+) position: (\d+)")
_TIME_ENTRY = re.compile(r"timestamp: (-?\d+) offset: (\d+)")
_INVALID_BYTES = re.compile(r"Found \d+ invalid bytes at the end of .+")
_GAPS_IN = re.compile(r"Non-consecutive offsets in (.+)")
_GAP = re.compile(r"  (-?\d+) is followed by (\d+)")
_FIELD = re.compile(r"(\w+): (\S+)")
_NOT_OF_THE_TOOL = "SLF4J:"


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """A record's numbers as the tool prints them; a size of -1 is null.

    `sequence` is -1 for messages of the old formats, of which the tool says none.
    """

    offset: int
    timestamp_ms: int
    key_size: int
    value_size: int
    sequence: int


@dataclass(slots=True)
class DumpedFile:
    """What the tool printed of one file. `gaps` are pairs: an offset and what follows it."""

    batches: list[dict[str, str]] = field(default_factory=list)
    records: list[DumpedRecord] = field(default_factory=list)
    index_entries: list[tuple[int, int]] = field(default_factory=list)
    time_entries: list[tuple[int, int]] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class DumpReport:
    """All files by their paths, and what the tool found wrong, gaps in offsets left out."""

    files: dict[Path, DumpedFile] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def parse_dump(output: ToolOutput) -> DumpReport:
    """The report of a run of the tool. Raises KeyError when a gap is in a file not dumped."""
    report = DumpReport()
    current = DumpedFile()
    for line in output.stdout.decode("utf-8", errors="replace").split("\n"):
        if match := _FILE.fullmatch(line):
            current = report.files.setdefault(Path(match[1]), DumpedFile())
        elif _INVALID_BYTES.fullmatch(line):
            report.findings.append(line)
        else:
            _add_line(current, line)
    _add_findings(report, output.stderr.decode("utf-8", errors="replace"))
    return report


def _add_line(file: DumpedFile, line: str) -> None:
    if match := _RECORD.match(line):
        offset, timestamp_ms, key_size, value_size, sequence = map(int, match.groups("-1"))
        file.records.append(DumpedRecord(offset, timestamp_ms, key_size, value_size, sequence))
    elif _BATCH.fullmatch(line):
        file.batches.append(dict(_FIELD.findall(line)))
    elif match := _INDEX_ENTRY.fullmatch(line):
        file.index_entries.append((int(match[1]), int(match[2])))
    elif match := _TIME_ENTRY.fullmatch(line):
        file.time_entries.append((int(match[1]), int(match[2])))


def _add_findings(report: DumpReport, said: str) -> None:
    gaps: list[tuple[int, int]] = []
    for line in said.splitlines():
        if match := _GAPS_IN.fullmatch(line):
            gaps = report.files[Path(match[1])].gaps
        elif match := _GAP.fullmatch(line):
            gaps.append((int(match[1]), int(match[2])))
        elif not line.startswith(_NOT_OF_THE_TOOL):
            report.findings.append(line)
