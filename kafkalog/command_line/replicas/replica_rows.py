"""A row for each replica of a partition, and one for each thing that is lost if it leads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafkalog.command_line.replicas.commits import Positions, ReplicaCommits
from kafkalog.coordination.metadata.image import Row
from kafkalog.coordination.metadata.leader_election import elected, stopped_for
from kafkalog.inspection.logs.replica_facts import Difference, replica_differences
from kafkalog.inspection.partitions.leader_choices import ALL, LeaderChoices, Loss, LostTransaction
from kafkalog.inspection.partitions.lost_tails import LostTail
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.truncation import resumed_offset, truncated_end

REPLICA_COLUMNS = (
    *("topic", "partition", "broker_id", "can_lead", "log_start_offset", "log_end_offset"),
    *("last_epoch", "leader_epochs", "high_watermark", "is_clean_shutdown", "damage"),
    *(
        "batches_read",
        "diverges_at",
        "lost_records",
        "lost_transactions",
        "lost_commits",
        "moved_groups",
    ),
    *("deleted_records", "truncations", "is_elected", "keep_stopped", "directory"),
)
LOSS_COLUMNS = (
    *("topic", "partition", "leader", "kind", "broker_ids", "what", "first_offset"),
    *("last_offset", "records", "bytes", "leader_epoch", "first_timestamp_ms"),
    *("last_timestamp_ms", "producer_id", "outcome", "group_id", "committed_topic"),
    *("committed_partition", "committed_offset", "remaining_offset"),
)


class PartitionRows(NamedTuple):
    """The rows about a partition; `differs` is True where something is lost with some choice, or a
    replica is damaged. `is_lost` is True where no replica can lead (F928). `has_clean_choice` is
    None without the cluster's metadata. `unchecked` is how many replicas were not read as a whole.
    `leader` is the choice whose loss was kept as `tails`, None without any."""

    name: str
    replicas: list[dict[str, Any]]
    losses: list[dict[str, Any]]
    differs: bool
    is_lost: bool
    has_clean_choice: bool | None
    absent: list[int]
    unchecked: int
    leader: int | None
    tails: list[LostTail]


KeepTails = Callable[[LeaderChoices, Loss], Iterable[LostTail]]


def partition_rows(
    logs: Sequence[PartitionLog],
    *,
    without: Collection[int],
    partition: Row | None,
    positions: Positions,
    now_ms: int,
    leader: int | None = None,
    keep: KeepTails | None = None,
    is_deep: bool = False,
) -> PartitionRows:
    """Return the rows about one partition by its replicas. `partition` is its row of the cluster's
    image, None if that is not known. `is_deep` reads all batches of all replicas. `keep` gets what
    is lost with `leader`, or if that is None with the choice that loses the fewest records."""
    found = LeaderChoices(logs, without=without, now_ms=now_ms, is_deep=is_deep)
    differs = {each.log.path: each for each in replica_differences(logs)}
    losses = {number: found.loss(number) for number in found.choices or (None,)}
    is_lossy = any(each.ranges for each in losses.values())
    commits = None
    if logs[0].topic == CONSUMER_OFFSETS and is_lossy:
        commits = ReplicaCommits(found.replicas)
    details = {
        number: list(_loss_rows(found, number, loss, commits, positions))
        for number, loss in losses.items()
    }
    running = {
        broker
        for number in found.choices
        if (broker := found.replicas[number].broker_id) is not None
    }
    rows = [
        _with_differences(
            found,
            number,
            _replica_row(found, number, losses, details),
            differs.get(found.replicas[number].log.path),
        )
        | _election(partition, found.replicas[number].broker_id, running)
        for number in range(len(found.replicas))
    ]
    rows.sort(
        key=lambda row: (not row["can_lead"], row["lost_records"] or 0, row["broker_id"] or 0)
    )
    wanted = rows[0]["broker_id"] if leader is None else leader
    brokers = {
        number: None if number is None else found.replicas[number].broker_id for number in losses
    }
    chosen = [
        (brokers[number], loss)
        for number, loss in losses.items()
        if number is None or brokers[number] == wanted
    ]
    here = {row["broker_id"] for row in rows}
    clean = None
    if partition is not None:
        clean = bool(running & {*(partition["isr"] or partition["eligible_leader_replicas"])})
    differs_somewhere = is_lossy or any(row["damage"] or row["deleted_records"] for row in rows)
    return PartitionRows(
        logs[0].name,
        rows,
        [row for each in details.values() for row in each],
        differs_somewhere,
        not found.choices,
        clean,
        [] if partition is None else [each for each in partition["replicas"] if each not in here],
        sum(each.batches_read != ALL for each in found.replicas),
        chosen[0][0] if chosen else None,
        [tail for _, loss in chosen if keep is not None for tail in keep(found, loss)],
    )


def _replica_row(
    found: LeaderChoices,
    number: int,
    losses: Mapping[int | None, Loss],
    details: Mapping[int | None, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    replica = found.replicas[number]
    # Without any choice each row has what is lost then.
    choice = number if found.choices else None
    loss = losses.get(choice)
    kinds = [row["kind"] for row in details.get(choice, ())]
    state, log = replica.state, replica.log
    latest = found.latest.state
    end = truncated_end(state, latest) if latest is not state else state.log_end
    return {
        "topic": log.topic,
        "partition": log.partition,
        "broker_id": replica.broker_id,
        "can_lead": found.can_lead(number),
        "log_start_offset": state.log_start,
        "log_end_offset": state.log_end,
        "last_epoch": replica.last_epoch,
        "leader_epochs": [entry._asdict() for entry in state.epochs],
        "high_watermark": state.high_watermark,
        "is_clean_shutdown": log.log_dir.is_clean_shutdown,
        "damage": replica.damage,
        "batches_read": replica.batches_read,
        "diverges_at": None if end == state.log_end else (state.log_start if end is None else end),
        "lost_records": None if loss is None else loss.records,
        "lost_transactions": None if loss is None else len(loss.transactions),
        "lost_commits": None if loss is None else kinds.count("commit"),
        "moved_groups": None if loss is None else kinds.count("position"),
        "deleted_records": None if loss is None else loss.deleted_records,
        "truncations": []
        if loss is None
        else [
            {"broker_id": broker, "end_offset": end} for broker, end in found.truncations(number)
        ],
        "directory": log.path,
    }


def _with_differences(
    found: LeaderChoices, number: int, row: dict[str, Any], differs: Difference | None
) -> dict[str, Any]:
    """Return the row with where the replica has other records, which no broker notices (F927)."""
    offset = found.first_difference(number) if differs is None else differs.offset
    diverges_at = row["diverges_at"]
    if offset is None or (diverges_at is not None and offset >= diverges_at):
        return row
    detail = f"other records than {found.latest.log.path} from offset {offset} on"
    words = detail if differs is None else differs.detail
    return row | {"diverges_at": offset, "damage": "; ".join(filter(None, (row["damage"], words)))}


def _election(partition: Row | None, broker: int | None, running: set[int]) -> dict[str, Any]:
    if partition is None or broker is None:
        return {"is_elected": None, "keep_stopped": None}
    return {
        "is_elected": elected(partition, running) == broker,
        "keep_stopped": stopped_for(partition, broker, running),
    }


def _loss_rows(
    found: LeaderChoices,
    leader: int | None,
    loss: Loss,
    commits: ReplicaCommits | None,
    positions: Positions,
) -> Iterator[dict[str, Any]]:
    chosen = None if leader is None else found.replicas[leader]
    log = found.replicas[0].log
    common = {
        **dict.fromkeys(LOSS_COLUMNS),
        "topic": log.topic,
        "partition": log.partition,
        "leader": None if chosen is None else chosen.broker_id,
    }
    for each in loss.ranges:
        what = "truncated" if chosen is not None else "no replica can lead"
        what = "dropped by recovery" if each.is_recovered_away else what
        values = each._asdict()
        values.pop("is_recovered_away")
        yield (
            common
            | {"kind": "records", "what": what, "broker_ids": list(values.pop("brokers"))}
            | values
        )
    for lost in loss.transactions:
        yield common | _transaction_row(lost)
    for commit in commits.lost(leader, loss) if commits is not None else ():
        yield common | {
            "kind": "commit",
            "broker_ids": [commit.broker_id],
            **_position_row(commit.commit, commit.remaining),
        }
    for row in positions.get((log.topic or "", log.partition or 0), ()):
        epoch, committed = row["leader_epoch"], row["committed_offset"]
        resumed = None
        if chosen is not None:
            resumed = resumed_offset(chosen.state, committed, epoch)
        if resumed != committed:
            yield common | {"kind": "position", **_position_row(row, resumed)}


def _transaction_row(lost: LostTransaction) -> dict[str, Any]:
    found = lost.transaction
    outcome = "open"
    if found.marker is not None:
        outcome = "aborted" if found.is_aborted else "committed"
    return {
        "kind": "transaction",
        "what": lost.what,
        "broker_ids": list(lost.brokers),
        "first_offset": found.first_offset,
        "last_offset": found.last_offset if found.marker_offset is None else found.marker_offset,
        "records": lost.records,
        "producer_id": found.producer_id,
        "outcome": outcome,
    }


def _position_row(commit: Mapping[str, Any], remaining: int | None) -> dict[str, Any]:
    committed = commit["committed_offset"]
    what = "reset" if remaining is None else "read again" if remaining < committed else "skip"
    return {
        "what": what,
        "group_id": commit["group_id"],
        "committed_topic": commit["topic"],
        "committed_partition": commit["partition"],
        "leader_epoch": commit["leader_epoch"],
        "committed_offset": committed,
        "remaining_offset": remaining,
    }
