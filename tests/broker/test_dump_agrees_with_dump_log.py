"""`kafkalog dump --deep` beside kafka-dump-log --print-data-log, run now, on all fixtures: every
record's key and value, every damaged file. F580, F581, F584."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.command_line.dump.plan import planned
from kafkalog.command_line.dump.request import DumpRequest
from kafkalog.command_line.dump.run import item_pieces
from kafkalog.format.side_files.producer_snapshot import write_producer_snapshot
from tests.support.broker.java_tools import ToolError, run_dump
from tests.support.repository import Unpack

pytestmark = pytest.mark.deep

RECORD = re.compile(r"\| offset: (\d+) ")
BATCH = re.compile(r"(?:baseOffset|offset): \d+ .* isvalid: true")
# What we escape, and what the tool cannot decode.
ESCAPED = re.compile(r"\\x[0-9a-f]{2}|\\[nr]|\ufffd")
FILES_AT_A_TIME = 40
SETS = {"kafka44": 5000, "kafka39zk": 1000, "kafka010": 1000, "kafka08": 500, "tiered43": 500}


def ours(path: Path) -> list[str]:
    request = DumpRequest(paths=(str(path),), deep=True, raw=True)
    pieces = (piece for item in planned(request) for piece in item_pieces(item, request))
    text = b"".join(bytes(piece.text) for piece in pieces)  # each is valid until the next
    return text.decode().split("\n")


def theirs(paths: list[Path]) -> Iterator[tuple[Path, list[str]]]:
    """What the tool prints of each file."""
    for begin in range(0, len(paths), FILES_AT_A_TIME):
        text = run_dump(paths[begin : begin + FILES_AT_A_TIME]).stdout.decode(errors="replace")
        for part in re.split(r"^Dumping ", text, flags=re.MULTILINE)[1:]:
            name, _, lines = part.partition("\n")
            yield Path(name), lines.split("\n")


def is_same(line: str, expected: str) -> bool:
    """Whether a record's line is the tool's, but for the values of headers that ours has."""
    before, headers, behind = line.partition(" headers: [")
    if not headers:
        return line == expected
    rest = expected.removeprefix(before)
    return rest != expected and behind.endswith(rest)


@pytest.mark.parametrize("name", SETS)
def test_every_key_and_value_is_what_the_tool_prints(name: str, unpacked: Unpack) -> None:
    logs = unpacked(f"{name}.logs") / "log-dirs"
    paths = [path for path in sorted(logs.rglob("*.log")) if path.stat().st_size]
    compared = 0
    for path, expected in theirs(paths):
        by_offset = {m[1]: line for line in expected if (m := RECORD.match(line))}
        found = ours(path)
        assert [line for line in found if BATCH.match(line)] == [
            line for line in expected if BATCH.match(line)
        ]
        for line in found:
            record = RECORD.match(line)
            if record and not ESCAPED.search(line) and "\ufffd" not in by_offset[record[1]]:
                assert is_same(line, by_offset[record[1]]), path
                compared += 1
    assert compared > SETS[name]


@pytest.mark.timeout(900)
def test_what_the_tool_prints_of_damaged_logs_is_reported_and_more(unpacked: Unpack) -> None:
    variants = unpacked("unclean.logs") / "variants"
    # Most damages are in one file of several: each content once.
    paths = {path.read_bytes(): path for path in sorted(variants.rglob("e.w-0/*.log"))}
    died = 0
    for data, path in paths.items():
        if not data:
            continue
        try:
            ((_, expected),) = theirs([path])
        except ToolError:
            died += 1
            expected = []
        # The tool takes any later format for format 2: no checksum covers that byte.
        told = {line for line in expected if BATCH.match(line) and " magic: 9 " not in line}
        assert told <= {line for line in ours(path) if BATCH.match(line)}, path
    assert died > 3


def test_of_empty_files_the_lines_are_the_tools(tmp_path: Path) -> None:
    # F580
    paths = [tmp_path / f"{0:020d}.{kind}" for kind in ("index", "log", "timeindex", "txnindex")]
    for path in paths:
        path.touch()
    paths.append(tmp_path / f"{5:020d}.snapshot")
    paths[-1].write_bytes(write_producer_snapshot([]))
    assert {path: ours(path)[1:] for path in paths} == dict(theirs(paths))
