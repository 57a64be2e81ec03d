"""`kafkalog tier`: tiered storage against its metadata and the local logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.answer_output import (
    answer_options,
    exit_code,
    write_findings,
    write_verdict,
)
from kafkalog.command_line.terminal import print_note, printed_columns, table_format_option
from kafkalog.errors import LogDirError, refuse_unknown
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import counted, size_text, time_text

if TYPE_CHECKING:
    from kafkalog.inspection.partitions.tier_check import TierRow
    from kafkalog.storage.log_dir.tiered_storage import StoredSegment
    from kafkalog.storage.partition_log import PartitionLog
    from kafkalog.views.tier_metadata import TierMetadata

_FINDING, _SEGMENT = "finding", "segment"
_TEXT_COLUMNS = {
    _FINDING: ("topic", "partition", "finding", "start_offset", "end_offset", "size", "detail"),
    _SEGMENT: (
        *("topic", "partition", "state", "start_offset", "end_offset", "size", "changed_ms"),
        *("broker_id", "finding"),
    ),
}
_EPILOG = """\
PATH is a broker's log directory, the folder of tiered storage, or a glob of these: local paths, or
URIs such as s3://bucket/path. Give the log directories of all brokers, which have
__remote_log_metadata, and the folder that the brokers' plug-in writes to. Without that folder the
command does not look for missing or left-over objects.

\b
Findings:
  missing_object       the metadata says copied, and the .log is missing: records are lost
  size_differs         the .log is not as long as the metadata says
  hole                 offsets that neither the tier nor a log directory has
  orphan               an object that the metadata does not name, or calls deleted
  unfinished_copy      the copy began and did not finish; a running broker may still copy
  unfinished_deletion  the deletion began and did not finish

Where a partition of __remote_log_metadata is missing, damaged, or without its first records,
nothing is called left over; stderr names it, and the exit code is 3.

With --by segment a local segment is "in tier" if segments in the tier, written by the same leaders,
hold all its offsets; otherwise it is "on disk only", or "active".

\b
Examples:
  kafkalog tier '/mnt/broker-*/data' s3://tier/kafka
  kafkalog tier '/mnt/broker-*/data' s3://tier/kafka --by segment --topic orders
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@answer_options(
    (_FINDING, _SEGMENT),
    "Print a row per finding, or per segment in the tier and on the disks.",
    table_format_option,
)
def tier(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    show: int,
    fail_on_findings: bool,
    table_format: str,
) -> ExitCode:
    """Compare tiered storage with __remote_log_metadata and the local logs."""
    from kafkalog.inspection.partitions.tier_check import TierRow, tier_rows
    from kafkalog.storage.log_dir.log_dir import find_partitions

    names = printed_columns(TierRow._fields, table_format, _TEXT_COLUMNS[by])
    stored, log_dirs = _stored(paths)
    # Rows have the ids of topics, which tell topics of one name apart.
    logs = find_partitions(log_dirs, strict=False, current_ids=None) if log_dirs else []
    metadata = _metadata(log_dirs or paths, logs)
    rows = tier_rows(
        list(metadata.remote.segments.values()),
        stored,
        logs,
        is_whole=not metadata.gaps,
        hides_changes=metadata.hides_changes,
    )
    if topics:
        known = {row.topic for row in rows}
        refuse_unknown("--topic", topics, known)
        rows = [row for row in rows if row.topic in topics]
    if partitions:
        numbers = {row.partition for row in rows}
        refuse_unknown("--partition", partitions, numbers)
        rows = [row for row in rows if row.partition in partitions]
    found = [row for row in rows if row.finding is not None]
    shown = found if by == _FINDING else rows
    cells = [[getattr(row, name) for name in names] for row in shown]
    texts = {"size": size_text, "changed_ms": time_text}
    write_findings(names, cells, table_format, show=show, noun="row", texts=texts)
    if stored is None:
        print_note("the folder of tiered storage is not among the paths: its objects are not known")
    for gap in metadata.gaps:
        print_note(f"__remote_log_metadata is not whole: {gap}")
    write_verdict(
        _verdict(rows, is_whole=not metadata.gaps),
        table_format,
        has_findings=bool(found or metadata.gaps),
    )
    code = exit_code(has_findings=bool(found), fails=fail_on_findings)
    return ExitCode.UNREADABLE_INPUT if metadata.gaps else code


def _stored(paths: Sequence[str]) -> tuple[list[StoredSegment] | None, list[str]]:
    """Return what is in the paths that are tiered storage, None if none is, and the others."""
    from kafkalog.storage.files.files import Directories, entries_left
    from kafkalog.storage.log_dir.log_dir import META_PROPERTIES, input_entries
    from kafkalog.storage.log_dir.tiered_storage import stored_segments

    directories = Directories()
    stored: list[StoredSegment] = []
    others: list[str] = []
    for entry in (each for path in paths for each in input_entries(path)):
        entries = entries_left(entry.path, directories.entries) if entry.is_directory else []
        has_logs = any(each.name == META_PROPERTIES for each in entries)
        found = [] if has_logs else stored_segments(directories, entry.path, entries)
        stored += found
        if not found:
            others.append(entry.path)
    return stored or None, others


def _metadata(paths: Sequence[str], logs: list[PartitionLog]) -> TierMetadata:
    from kafkalog.storage.names import REMOTE_LOG_METADATA
    from kafkalog.views.engine import LocalViews
    from kafkalog.views.tier_metadata import tier_metadata

    if not any(log.topic == REMOTE_LOG_METADATA for log in logs):
        raise LogDirError(
            f"{', '.join(paths)}: there is no {REMOTE_LOG_METADATA}, which says what was copied: "
            "give the log directories of all brokers too"
        )
    return tier_metadata(LocalViews(paths, logs, processes=1))


def _verdict(rows: Sequence[TierRow], *, is_whole: bool) -> str:
    from kafkalog.coordination.metadata.remote_segments import COPIED
    from kafkalog.inspection.partitions.tier_check import ERRORS, IN_TIER

    copied = [row for row in rows if row.state == COPIED]
    safe = [row for row in rows if row.state == IN_TIER]
    errors = sum(row.finding in ERRORS for row in rows)
    others = sum(row.finding is not None for row in rows) - errors
    places = {(row.topic, row.partition) for row in copied}
    said = (
        f"{counted(len(copied), 'segment')} of {counted(len(places), 'partition')} in the tier, "
        f"{size_text(sum(row.size or 0 for row in copied))}; {counted(len(safe), 'local segment')} "
        f"safe there, {size_text(sum(row.size or 0 for row in safe))}"
    )
    if errors:
        said += f"; {counted(errors, 'finding')} of lost records"
    if others:
        said += f"; {counted(others, 'finding')} of what is left over"
    if not is_whole:
        return (
            f"{said}; what else is lost or left over is NOT KNOWN: give the log directories of all "
            "brokers"
        )
    return said if errors or others else f"{said}; sound"
