"""`kafkalog replicas`: what is lost with each replica as the leader of its partition."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.answer_output import shown_rows_option, table_rows, write_findings
from kafkalog.command_line.inputs import with_topics
from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    table_format_option,
)
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.words import counted, first_names, time_text

if TYPE_CHECKING:
    from kafkalog.command_line.replicas.replica_rows import PartitionRows
    from kafkalog.coordination.metadata.image import Row
    from kafkalog.inspection.partitions.leader_choices import LeaderChoices, Loss
    from kafkalog.inspection.partitions.lost_tails import LostTail
    from kafkalog.storage.partition_log import PartitionLog

_REPLICA, _LOSS = "replica", "loss"
_TEXT_COLUMNS = {
    _REPLICA: (
        *("topic", "partition", "broker_id", "can_lead", "lost_records", "lost_transactions"),
        *("lost_commits", "moved_groups", "is_elected", "keep_stopped", "diverges_at"),
        *("log_end_offset", "last_epoch", "damage", "batches_read"),
    ),
    _LOSS: (
        *("topic", "partition", "leader", "kind", "broker_ids", "what", "first_offset"),
        *("last_offset", "records", "outcome", "group_id", "committed_topic"),
        *("committed_partition", "committed_offset", "remaining_offset", "last_timestamp_ms"),
    ),
}
_MOST_NAMES = 5
# Copies that end so near each other were made at one time.
_SAME_TIME_MS = 1000
_NO_METADATA = (
    "IS-ELECTED and KEEP-STOPPED need the cluster's metadata: give a directory that has "
    "__cluster_metadata-0 too"
)

_EPILOG = f"""\
{shared.PATHS_MEANING}
Give the log directories of all brokers that have replicas. The brokers are stopped, or these are
copies. A row is a replica, and what no replica has any more if its broker becomes the leader of the
partition and the other brokers follow it: followers truncate what their leader does not have. Of
each partition the replica with which the fewest records are lost comes first.

DIVERGES-AT is where a replica would be truncated if it followed the one with the latest leader
epoch. MOVED-GROUPS are groups that read records again, skip some, or need auto.offset.reset.
A partition that none of the other brokers has, or with which none of them starts, is lost as a
whole: CAN-LEAD is no, and the rows have everything that is in its replicas. The exit code is 1 if
there is one.

BATCHES-READ is "none" for a replica of which nothing was read, because it ends as the others do
and has their leader epochs, and "in part" where other segments were read: nothing is known of
damage in the rest. --deep reads all of them, and without it the column is there only if needed.

IS-ELECTED is the replica that an unclean election makes the leader if all these brokers run, and
KEEP-STOPPED the brokers to keep stopped for the replica of this row to be elected; both need the
cluster's metadata among the paths. With --by loss a row is a range of records, a transaction, a
commit or a group's position that is lost.

--export keeps what is lost with the first row of each partition, or with --leader. DIR/broker-N is
a log directory with the batches that broker N has of it, DIR/lost_records.parquet has each lost
record once. DIR appears when it is complete.

\b
Examples:
  kafkalog replicas '/mnt/broker-*/data'
  kafkalog replicas '/mnt/broker-*/data' --topic orders --by loss
  kafkalog replicas '/mnt/broker-*/data' --without 3 --election-json partitions.json
  kafkalog replicas '/mnt/broker-*/data' --leader 2 --export /mnt/backup/lost-records
"""


class _BrokersType(click.ParamType[frozenset[int]]):
    name = "brokers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[int]:
        if isinstance(value, frozenset):
            return value
        try:
            return frozenset(int(each) for each in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of broker ids, such as 1,3", param, ctx)


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@shared.by_option((_REPLICA, _LOSS), "Print a row per replica, or per thing that is lost.")
@click.option(
    "--without",
    metavar="BROKER,...",
    type=_BrokersType(),
    default=frozenset(),
    help="Brokers that stay away: what only they have is lost.",
)
@click.option(
    "--leader", metavar="BROKER", type=int, help="Only what is lost with this broker as the leader."
)
@click.option(
    "--all", "with_all", is_flag=True, help="As text, show partitions that lose nothing too."
)
@click.option(
    "--deep",
    is_flag=True,
    help="Read all batches of all replicas, with their checksums, and not only where replicas "
    "differ by their ends and leader epochs.",
)
@click.option(
    "--election-json",
    metavar="FILE",
    type=GivenPath(),
    help="Write the partitions that need an unclean election to this file, for "
    "kafka-leader-election --election-type unclean --path-to-json-file.",
)
@click.option(
    "--export",
    metavar="DIR",
    type=GivenPath(),
    help="Write the batches and records that are lost into this new directory.",
)
@shown_rows_option("rows")
@table_format_option
@shared.processes_option
def replicas(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    without: frozenset[int],
    leader: int | None,
    with_all: bool,
    deep: bool,
    election_json: str | None,
    export: str | None,
    show: int,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Show what is lost with each replica as the leader of its partition."""
    from kafkalog.command_line.replicas.commits import positions
    from kafkalog.command_line.replicas.replica_rows import LOSS_COLUMNS, REPLICA_COLUMNS
    from kafkalog.inspection.logs.replica_facts import live_replicas
    from kafkalog.inspection.metadata.current_topics import find_logs, without_former
    from kafkalog.inspection.partitions.leader_choices import ALL
    from kafkalog.storage.partition_log import is_selected

    every = REPLICA_COLUMNS if by == _REPLICA else LOSS_COLUMNS
    columns = printed_columns(every, table_format, _TEXT_COLUMNS[by])
    logs = find_logs(paths, strict=False)
    _refuse_outputs(paths, logs, election_json, export)
    counting = [log for log in without_former(logs, topics) if _counts(log)]
    _refuse_unknown("--without", without, counting)
    _refuse_unknown("--leader", frozenset() if leader is None else {leader}, counting)
    meant = live_replicas(with_topics(counting, topics, partitions))
    processes = processes_for(bytes_in(logs), processes)
    now_ms = time.time_ns() // 1_000_000
    options = {
        "without": without,
        "leader": leader,
        "is_deep": deep,
        "positions": positions(logs, processes),
        "now_ms": now_ms,
    }
    image = _partitions_of_image(logs)
    rows, kept = _read(meant, image, options, export, processes)
    is_text = table_format == "text"
    shown = [each for each in rows if each.differs or each.is_lost or with_all or not is_text]
    choice = "broker_id" if by == _REPLICA else "leader"
    found = [
        row
        for each in shown
        for row in (each.replicas if by == _REPLICA else each.losses)
        if each.is_lost or leader in (None, row[choice])
    ]
    if columns == _TEXT_COLUMNS[_REPLICA] and all(row["batches_read"] == ALL for row in found):
        columns = columns[:-1]
    lists = {name for name in columns if any(isinstance(row[name], list) for row in found)}
    write_findings(
        *(columns, table_rows(found, columns, table_format), table_format),
        show=show,
        noun="row",
        texts={"last_timestamp_ms": time_text} | dict.fromkeys(lists, _list_text),
    )
    if election_json is not None:
        _write_election(election_json, rows)
    if kept is not None:
        print_note(kept)
    _sum_up(rows, leader, is_text=is_text)
    _note_times([logs for logs, each in zip(meant, rows, strict=True) if each.differs], now_ms)
    absent = [
        f"{topic}-{partition}"
        for topic, partition in sorted(image.keys() - {log.topic_partition for log in logs})
        if is_selected(topic, partition, topics, partitions)
    ]
    if absent:
        print_note(
            "the cluster's metadata has partitions without a replica under the paths, which are "
            f"not in the rows: {first_names(absent, _MOST_NAMES)}"
        )
    if by == _REPLICA and found and not image:
        print_note(_NO_METADATA)
    return ExitCode.FINDINGS if any(each.is_lost for each in rows) else ExitCode.DONE


def _note_times(differing: Sequence[Sequence[PartitionLog]], now_ms: int) -> None:
    """Note how late the logs of each broker are that differ: copies of running brokers are made one
    after another."""
    from kafkalog.inspection.partitions.newest_times import newest_time_ms

    by_broker: dict[int, list[PartitionLog]] = {}
    for log in (log for logs in differing[:_MOST_NAMES] for log in logs):
        if log.log_dir.broker_id is not None:
            by_broker.setdefault(log.log_dir.broker_id, []).append(log)
    found = ((broker, newest_time_ms(logs, now_ms)) for broker, logs in sorted(by_broker.items()))
    times = {broker: time_ms for broker, time_ms in found if time_ms is not None}
    if times and max(times.values()) - min(times.values()) >= _SAME_TIME_MS:
        each = (f"of broker {broker} {time_text(time_ms)}" for broker, time_ms in times.items())
        some = f" of the first {_MOST_NAMES} of these" if len(differing) > _MOST_NAMES else ""
        print_note(
            f"the newest record{some} is {', '.join(each)}: a copy that was made earlier lacks "
            "what came later, and the broker itself can have it; a broker that stopped earlier "
            "does not"
        )


def _refuse_outputs(
    paths: Sequence[str],
    logs: Sequence[PartitionLog],
    election_json: str | None,
    export: str | None,
) -> None:
    from kafkalog.storage.files.output_files import (
        refuse_existing_directory,
        refuse_unwritable_file,
    )
    from kafkalog.storage.log_dir.log_dir import input_entries
    from kafkalog.storage.log_dir.read_directories import directories_read, refuse_inside

    inputs = [entry for path in paths for entry in input_entries(path)]
    read = directories_read(inputs, logs)
    if election_json is not None:
        refuse_inside("--election-json", election_json, read, what="file")
        refuse_unwritable_file("--election-json", election_json)
    if export is not None:
        refuse_inside("--export", export, read)
        refuse_existing_directory("--export", export)


def _read(
    meant: Sequence[list[PartitionLog]],
    image: Mapping[tuple[str, int], Row],
    options: Mapping[str, Any],
    export: str | None,
    processes: int,
) -> tuple[list[PartitionRows], str | None]:
    """Return the rows of each partition; with `export` write what is lost into it, and say what
    was written."""
    from kafkalog.command_line.replicas.replica_rows import partition_rows
    from kafkalog.inspection.partitions.lost_tails import finish_tails, write_tails
    from kafkalog.storage.files.whole_directory import whole_directory

    with nullcontext() if export is None else whole_directory(export, os.fsync) as scratch:

        def keep(found: LeaderChoices, loss: Loss) -> list[LostTail]:
            if scratch is None:
                return []
            return [*write_tails(found, loss, scratch, options["now_ms"])]

        def read(found: list[PartitionLog]) -> list[PartitionRows]:
            key = (str(found[0].topic), found[0].partition or 0)
            return [partition_rows(found, partition=image.get(key), keep=keep, **options)]

        rows = list(in_order(read, meant, processes=processes))
        if export is None or scratch is None:
            return rows, None
        from kafkalog.command_line.replicas.lost_records import LOST_RECORDS, write_lost_records

        tails = [tail for each in rows for tail in each.tails]
        records = write_lost_records(tails, scratch, export, processes)
        finish_tails(scratch, tails)
    for line in (line for tail in tails for line in tail.left_out):
        print_note(f"left out: {line}")
    partitions = len({tail.name for tail in tails})
    return rows, (
        f"{export}: {counted(records, 'record')} of {counted(partitions, 'partition')} in "
        f"{LOST_RECORDS}, {counted(len(tails), 'log')} with the batches that brokers have"
    )


def _counts(log: PartitionLog) -> bool:
    """Return whether a log is a replica for which controllers elect leaders, and has batches."""
    from kafkalog.storage.names import CLUSTER_METADATA
    from kafkalog.storage.reading.oldest_log import is_oldest_layout

    return (
        log.topic != CLUSTER_METADATA and log.tiered_topic_id is None and not is_oldest_layout(log)
    )


def _refuse_unknown(option: str, brokers: Set[int], logs: Sequence[PartitionLog]) -> None:
    known = {log.log_dir.broker_id for log in logs if log.log_dir.broker_id is not None}
    unknown = sorted(brokers - known)
    if unknown:
        names = ", ".join(map(str, sorted(known)))
        raise OptionError(
            option, ",".join(map(str, unknown)), f"brokers of the log directories: {names}"
        )


def _partitions_of_image(logs: Sequence[PartitionLog]) -> Mapping[tuple[str, int], Row]:
    """Return the partitions by the best copy of the cluster's metadata, none without one."""
    from kafkalog.coordination.metadata.cluster_rows import cluster_rows
    from kafkalog.inspection.metadata.copies import best_copy, copies_among
    from kafkalog.inspection.metadata.replay import image_at

    copies = copies_among(logs)
    if not copies:
        return {}
    image = image_at(best_copy(copies).log).image
    return {(row["topic"], row["partition"]): row for row in cluster_rows("partition", image)}


def _list_text(values: Sequence[object]) -> str:
    return ",".join(map(str, values)) or "none"


def _write_election(path: str, rows: Sequence[PartitionRows]) -> None:
    from kafkalog.storage.files.output_files import given_file

    named = [
        {"topic": row["topic"], "partition": row["partition"]}
        for each in rows
        for row in each.replicas[:1]
        # An election does not help where no replica can lead.
        if not each.is_lost and (each.differs or each.has_clean_choice is False)
    ]
    with given_file("--election-json", path) as file:
        file.write(json.dumps({"partitions": named}, indent=1).encode() + b"\n")
    print_note(f"{path}: {counted(len(named), 'partition')}")


def _sum_up(rows: Sequence[PartitionRows], leader: int | None, *, is_text: bool) -> None:
    put = print_text if is_text else print_note
    differing = [each for each in rows if each.differs and not each.is_lost]
    lost = [each.name for each in rows if each.is_lost]
    what = f", {len(lost):,} lost as a whole" if lost else ""
    unchecked = sum(each.unchecked for each in rows)
    if unchecked:
        what += (
            f", by ends and leader epochs; the contents of {counted(unchecked, 'replica')} are not "
            "compared as a whole: give --deep"
        )
    put(f"replicas differ in {len(differing):,} of {counted(len(rows), 'partition')}{what}")
    if lost:
        print_note(f"no replica can lead: {first_names(lost, _MOST_NAMES)}")
    absent = [f"{each.name} on {','.join(map(str, each.absent))}" for each in rows if each.absent]
    if absent:
        names = first_names(absent, _MOST_NAMES)
        print_note(f"replicas that are not under the paths: {names}")
    others = [each.name for each in rows if leader is not None and each.leader is None]
    if others:
        print_note(f"broker {leader} cannot lead {first_names(others, _MOST_NAMES)}")
