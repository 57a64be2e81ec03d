"""`kafkalog diff`: what changed between two copies of log directories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    save_tables,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import with_topics
from kafkalog.command_line.terminal import printed_columns
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.partition_log import bytes_in, those_of
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.views.progress import progress_bar
from kafkalog.words import size_text

if TYPE_CHECKING:
    from kafkalog.questions.disks.diff import Diff

_TABLE = "log_changes"
_KINDS = ("topic", "partition", "metadata", "group")
_PARTITION_COLUMNS = (
    *("topic", "partition", "change", "continues_until", "records_added", "records_removed"),
    *("bytes_before", "bytes", "start_offset", "end_offset_before", "end_offset"),
)
_COLUMNS = {
    "topic": (
        *("topic", "partitions_before", "partitions", "bytes_before", "bytes", "records_added"),
        *("records_removed", "changes"),
    ),
    "metadata": (
        *("kind", "name", "topic", "partition", "change", "column", "old", "new", "cluster_id"),
    ),
    "group": (
        *("group_id", "topic", "partition", "change", "committed_offset_before"),
        *("committed_offset", "records_passed", "cluster_id"),
    ),
}
_TEXT_COLUMNS = {
    # A narrow terminal shows the first ones.
    "topic": (
        *("topic", "changes", "records_added", "records_removed", "bytes_before", "bytes"),
        *("partitions_before", "partitions"),
    ),
    "metadata": ("kind", "name", "change", "column", "old", "new"),
    "group": _COLUMNS["group"][:-1],
}
_TEXTS: dict[str, Callable[[Any], str]] = dict.fromkeys(("bytes_before", "bytes"), size_text)

_EPILOG = """\
\b
BEFORE and AFTER are two copies of the same log directory, such as snapshots of a volume; a glob in
quotes names the directories of several brokers.
The command reads headers of batches, the metadata and __consumer_offsets. Findings are logs of the
later copy that do not continue those of the earlier one, because they were truncated, rewritten or
created again, and logs that it does not have although their topics were not deleted.

\b
Examples:
  kafkalog diff /snapshots/monday/kafka /snapshots/tuesday/kafka
  kafkalog diff '/snapshots/monday/*' '/snapshots/tuesday/*' --by partition --topic orders
  kafkalog diff /snapshots/monday/kafka /var/lib/kafka/data --by metadata
  kafkalog diff /snapshots/monday/kafka /var/lib/kafka/data --by group --format json
"""


@click.command(epilog=_EPILOG)
@click.argument("before", type=GivenPath())
@click.argument("after", type=GivenPath())
@shared.topic_option()
@shared.partition_option()
@answer_options(
    _KINDS,
    "A row per topic or partition that changed, per change of the metadata, or per commit of a "
    "group that moved.",
)
@click.option(
    "--all", "is_all", is_flag=True, help="Print topics and partitions without a change too."
)
@shared.processes_option
def diff(
    before: str,
    after: str,
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    is_all: bool,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show what changed between two copies of log directories: records, topics, configs, groups."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.questions.disks.diff import DiffRequest
    from kafkalog.questions.disks.diff import diff as answer
    from kafkalog.views.engine import LocalViews
    from kafkalog.views.parallel import processes_for

    table_format = output.table_format
    columns = _columns(by, table_format)
    found = [find_logs([path], strict=False) for path in (before, after)]
    with_topics([*found[0], *found[1]], topics, partitions)
    place = output.tables_of_logs([_TABLE], [after], found[1], [before])
    chosen = [those_of(logs, topics, partitions) for logs in found]
    is_whole = not topics and not partitions
    size = sum(map(bytes_in, chosen))
    with progress_bar(size, "comparing") as bar:
        earlier, later = (
            LocalViews([path], logs, processes_for(size, processes), {}, bar.update)
            for path, logs in zip((before, after), found, strict=True)
        )
        request = DiffRequest(chosen[0], chosen[1], with_cluster=is_whole or by not in _LOGS)
        changes = answer(earlier, later, request)
    write_answer(columns, _rows(changes, by, is_all=is_all), table_format, show=show, texts=_TEXTS)
    write_words(changes.words([each for each in _KINDS if each != by]), table_format)
    save_tables(place, {_TABLE: changes.logs})
    return exit_code(has_findings=changes.has_findings, fails=fail_on_findings)


_LOGS = _KINDS[:2]


def _columns(by: str, table_format: str) -> tuple[str, ...]:
    if by == "partition":
        return answer_columns(_TABLE, _PARTITION_COLUMNS, table_format)
    return printed_columns(_COLUMNS[by], table_format, _TEXT_COLUMNS.get(by, _COLUMNS[by]))


def _rows(changes: Diff, by: str, *, is_all: bool) -> Sequence[Mapping[str, Any]]:
    if by == "metadata":
        return changes.metadata
    if by == "group":
        return changes.groups
    if by == "partition":
        return [row for row in changes.logs if is_all or row["change"] != "same"]
    return [
        {**vars(each), "changes": _changes_text(each.changes)}
        for each in changes.topics
        if is_all or not each.is_same
    ]


def _changes_text(changes: Mapping[str, int]) -> str:
    """Return what happened to how many partitions, as `grown 2, new 1`."""
    return ", ".join(f"{name} {count}" for name, count in sorted(changes.items()))
