"""What a read of records does with the damaged ranges of a segment, and with an end that a log has
lost."""

from __future__ import annotations

from dataclasses import replace

from kafkalog.columns.batches.fault_details import FaultyRange, missing_end
from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Severity
from kafkalog.format.offsets import OffsetSpan
from kafkalog.log_lines import logger
from kafkalog.storage.reading.log_bounds import RecordedEnd, with_files
from kafkalog.views.options.options import Mode

_logger = logger(__name__)

# Of so many damaged places in one log each has a line in the log; the rest is counted.
_LOGGED = 20


class SegmentDamage:
    """Does with damaged ranges what `mode` says."""

    def __init__(self, path: str, mode: Mode) -> None:
        self._path = path
        self._mode = mode
        self._passed = PassedDamage(mode)
        self._bytes = 0

    def report(self, fault: FaultyRange) -> None:
        """Raise, log, or pass over."""
        if fault.severity < Severity.ERROR:
            _logger.info("%s: %s", self._path, _described(fault))
            return
        if self._mode is Mode.FAILFAST:
            raise CorruptDataError(
                fault.fault.label,
                fault.detail,
                position=fault.position,
                path=self._path,
                base_offset=(
                    fault.expected_offset if fault.base_offset is None else fault.base_offset
                ),
                advice="mode=PERMISSIVE reads the sound rest, view=faults lists all damage",
            )
        self._bytes += fault.length
        self._passed.add(f"{self._path}: {_described(fault)}; skipped")

    def filled(self, span: OffsetSpan, file: str) -> None:
        """Say that offsets came from another replica."""
        _logger.warning(
            "%s: offsets %d to %d read from %s", self._path, span.start, span.end - 1, file
        )

    def summarise(self) -> None:
        """After the segment: how much was skipped, if not every range had its own line."""
        self._passed.summarise(
            f"{self._path}: {self._passed.count} damaged ranges of {self._bytes} bytes in all"
            " skipped"
        )


def _described(fault: FaultyRange) -> str:
    place = f"position {fault.position}, {fault.length} bytes, from offset {fault.expected_offset}"
    return f"{place}: {fault.fault.label}: {fault.detail}"


def report_missing_end(
    end: RecordedEnd | None, log_end: int, requested_end: int, file_size: int, damage: SegmentDamage
) -> None:
    """After a clean stop the records up to the recorded end were there, and where files beside a
    log are left without any segment. Rules: docs/format.md F76 and F922."""
    if end is None or not (end.is_clean or end.is_trimmed):
        return
    end = with_files(end, log_end)
    missing = missing_end(log_end, file_size, replace(end, offset=min(end.offset, requested_end)))
    if missing is not None and missing.severity == Severity.ERROR:
        damage.report(missing)


class PassedDamage:
    """Counts damaged places. In mode PERMISSIVE the first of them are logged as well."""

    def __init__(self, mode: Mode) -> None:
        self._is_logged = mode is Mode.PERMISSIVE
        self.count = 0

    def add(self, line: str) -> None:
        """Pass over a place, which `line` describes."""
        self.count += 1
        if self._is_logged and self.count <= _LOGGED:
            _logger.warning(line)

    def summarise(self, line: str) -> None:
        """At the end: log how many there were, if not every place had its own line."""
        if self._is_logged and self.count > _LOGGED:
            _logger.warning(line)
