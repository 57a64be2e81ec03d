"""`kafkalog undelete`: restore what a broker has deleted but not yet removed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.answer_output import exit_code, table_rows, write_verdict
from kafkalog.command_line.terminal import printed_columns, table_format_option, write_table
from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.progress import progress_bar
from kafkalog.words import counted, name_suggestions, size_text

if TYPE_CHECKING:
    from kafkalog.storage.log_dir.deleted_logs import DeletedLog

_COLUMNS = (
    *("topic", "partition", "topic_id", "segments", "deleted_segments", "start_offset"),
    *("end_offset", "bytes", "source"),
)
_ALL_COLUMNS = (*_COLUMNS, "replaced_segments", "unreadable_bytes", "left_out")
_Row = Mapping[str, Any]

_EPILOG = """\
\b
PATH is a broker's log directory, or one of its directories that end in -delete
or -stray. Stop the broker first and do not start it: a broker removes .deleted
files when it starts, and a minute (file.delete.delay.ms) after it renamed them.
Stop it with kill -9: a clean stop can take longer than that minute, and what
waits for deletion is deleted meanwhile.

The command copies partition directories that end in -delete or -stray to DIR under their
plain names, and segments that end in .deleted together with the partition's other segments. Where
these overlap, those with all records are copied. What is left out with records that the copy lacks
is named, and is a finding. It does not change PATH. See docs/undelete.md.

\b
Examples:
  kafkalog undelete /var/lib/kafka/data --topic orders --to /mnt/new/kafka-logs
  kafkalog undelete /var/lib/kafka/data --topic orders --partition 3 --to /mnt/new/kafka-logs
"""


@click.command(epilog=_EPILOG)
@click.argument("path", metavar="PATH", type=click.Path(exists=True, file_okay=False))
@shared.topic_option("Restore this topic; repeatable.", required=True)
@shared.new_log_dir_option
@shared.partition_option()
@click.option(
    "--topic-id",
    metavar="ID",
    help="With one --topic: restore the topic with this id, of several that had the name.",
)
@click.option(
    "--new-topic-id",
    metavar="ID",
    help="With one --topic: write this id into partition.metadata, if the topic was recreated.",
)
@shared.fail_on_findings_option(default=True)
@table_format_option
@shared.processes_option
def undelete(
    path: str,
    topics: Sequence[str],
    target: str,
    partitions: Sequence[int],
    topic_id: str | None,
    new_topic_id: str | None,
    fail_on_findings: bool,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Restore what a broker has deleted in PATH but not yet removed."""
    from kafkalog.storage.log_dir.deleted_logs import deleted_logs, one_incarnation
    from kafkalog.storage.log_dir.read_directories import refuse_inside

    columns = printed_columns(_ALL_COLUMNS, table_format, _COLUMNS)
    refuse_inside("--to", target, [path])
    _refuse_no_id("--new-topic-id", new_topic_id)
    given = {"--topic-id": topic_id, "--new-topic-id": new_topic_id}
    of_one = next((option for option, value in given.items() if value is not None), None)
    if of_one is not None and len(set(topics)) > 1:
        raise ConflictingOptionsError(of_one, "several --topic")
    source = os.path.abspath(path)
    logs = [log for topic in dict.fromkeys(topics) for log in deleted_logs(source, topic)]
    by_topic: dict[str, list[DeletedLog]] = defaultdict(list)
    for log in _of_partitions(logs, partitions):
        by_topic[log.topic].append(log)
    chosen = [log for found in by_topic.values() for log in one_incarnation(found, topic_id)]
    rows = _undeleted(chosen, target, new_topic_id, processes)
    write_table(columns, table_rows(rows, columns, table_format), table_format)
    if table_format == "text":
        for line in (line for row in rows for line in row["left_out"]):
            click.echo(f"left out: {line}")
    has_findings = any(row["left_out"] or row["unreadable_bytes"] for row in rows)
    words = _verdict(rows, ", ".join(dict.fromkeys(topics)), target)
    write_verdict(words, table_format, has_findings=has_findings)
    return exit_code(has_findings=has_findings, fails=fail_on_findings)


def _refuse_no_id(option: str, topic_id: str | None) -> None:
    from kafkalog.errors import CorruptDataError
    from kafkalog.format.side_files.partition_metadata import read_topic_id, write_topic_id

    try:
        if topic_id is not None:
            read_topic_id(write_topic_id(topic_id))
    except CorruptDataError:
        allowed = "an id of 22 characters, as kafka-topics --describe shows it"
        raise OptionError(option, topic_id, allowed) from None


def _of_partitions(logs: list[DeletedLog], partitions: Sequence[int]) -> list[DeletedLog]:
    there = {log.partition for log in logs}
    missing = sorted(set(partitions) - there)
    if missing:
        names = name_suggestions([*map(str, missing)], [*map(str, there)])
        raise OptionError("--partition", ",".join(map(str, missing)), f"what is there: {names}")
    return [log for log in logs if not partitions or log.partition in partitions]


def _undeleted(
    logs: list[DeletedLog], target: str, topic_id: str | None, processes: int | None
) -> list[_Row]:
    """Write the new directory; a row for each partition."""
    from kafkalog.inspection.partitions.undeleted_logs import undeleted_log
    from kafkalog.storage.files.files import entries_left
    from kafkalog.storage.files.whole_directory import whole_directory
    from kafkalog.storage.writing.salvaged_log_dir import copy_properties

    sizes = {log.path: sum(entry.size for entry in entries_left(log.path)) for log in logs}
    size = sum(sizes.values())
    with whole_directory(target, os.fsync) as scratch, progress_bar(size, "copying") as bar:

        def rows_of(log: DeletedLog) -> Iterator[_Row]:
            yield undeleted_log(log, scratch, topic_id)

        found = in_order(
            rows_of,
            logs,
            processes=processes_for(size, processes),
            on_done=lambda log: bar.update(sizes[log.path]),
        )
        with closing(found):
            rows = list(found)
        copy_properties(os.path.dirname(logs[0].path), scratch)
    return rows


def _verdict(rows: Sequence[_Row], topics: str, target: str) -> str:
    segments = sum(row["segments"] for row in rows)
    words = (
        f"{counted(len(rows), 'partition')} of {topics} with {counted(segments, 'segment')}, "
        f"{size_text(sum(row['bytes'] for row in rows))}, in {target}"
    )
    unreadable = sum(row["unreadable_bytes"] for row in rows)
    if unreadable:
        words += f"; UNREADABLE: {counted(unreadable, 'byte')}, zeros there"
    replaced = sum(row["replaced_segments"] for row in rows)
    if replaced:
        words += (
            f"; {counted(replaced, 'cleaned segment')} left out, and the segments from before the "
            "cleaning copied: a key that was deleted since can have its old value again"
        )
    left_out = sum(len(row["left_out"]) for row in rows)
    if left_out:
        words += f"; {counted(left_out, 'file')} left out"
    if any(row["topic_id"] is None for row in rows):
        words += "; no topic id (partition.metadata), without which a broker sets it aside as stray"
    return f"{words}; kafkalog check {target} says whether it is sound"
