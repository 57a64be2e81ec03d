"""Where do consumers of each group continue when they start, with each replica as the leader?

Each log is taken as its broker has it after its next start, which can truncate it, under a new
leader epoch. Rules: docs/format.md F943 and F1235 to F1237.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, NamedTuple

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.coordination.groups.commit_status import NO_COMMIT
from kafkalog.coordination.groups.group_records import GroupPartition
from kafkalog.inspection.groups.placed_commits import DELIVERY_COMPLETE
from kafkalog.inspection.lag.lag_columns import with_accounts
from kafkalog.inspection.logs.replica_facts import live_replicas
from kafkalog.inspection.logs.time_lookup import time_answer
from kafkalog.inspection.metadata.cluster_history import cluster_histories
from kafkalog.inspection.partitions.leader_choices import Replica
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.recovery.truncation import ReplicaLog, resumed_offset
from kafkalog.views.engine import Rows, RowsInMemory, Views
from kafkalog.views.options.offset_reset import EARLIEST, LATEST, OffsetReset
from kafkalog.words import counted, first_names

TABLE = "group_resume"
COLUMNS = (
    *("group", "topic", "partition", "leader", "leads_now", "resumes_at", "reason"),
    *("current_offset", "records_again", "records_skipped", "to_read", "log_start_offset"),
    *("log_end_offset", "what_happens"),
)
_ANSWERS = ("resumes_at", "reason", "records_again", "records_skipped")
_MOST_SENTENCES = 20
_MOST_GROUPS, _MOST_PARTITIONS = 5, 3
# Of a row, beside COLUMNS: the reason in words, and whether another commit waits.
_WHY, _WAITS = "why", "waits"
# Statuses of commits that brokers give to no consumer any more.
_DROPPED = {
    "expired": "the commit expires: brokers drop it by offsets.retention.minutes",
    "other_partition": "the commit is in a partition of __consumer_offsets that is not the group's",
}
_GONE_TOPICS = ("deleted_topic", "unknown_topic")


class Reason(StrEnum):
    """Why consumers continue where they do."""

    AT_COMMIT = "at_commit"
    EPOCH_ENDED = "epoch_ended"
    BELOW_LOG_START = "below_log_start"
    BEYOND_LOG_END = "beyond_log_end"
    NO_COMMIT = "no_commit"
    DROPPED = "dropped"
    NO_LOG = "no_log"
    NO_START = "no_start"


class CommitToResume(NamedTuple):
    """A group's commit for a partition, None without one, the leader epoch of the last record that
    was read, what the commit is worth now (docs/lag.md), and whether another one waits for the end
    of its transaction. Of a share group (F780) where it begins, and how many deliveries after that
    are complete."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    leader_epoch: int | None
    status: str
    has_open_commit: bool = False
    is_share: bool = False
    delivered: int = 0


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """auto.offset.reset and isolation.level of the consumers, and the time of the run."""

    reset: OffsetReset
    now_ms: int
    read_committed: bool = False


@dataclass(frozen=True)
class GroupResume:
    """Rows with COLUMNS, a row per commit and replica that could lead, the one that leads now
    first; one without a leader where the input does not have the log."""

    found: Sequence[dict[str, Any]]

    @property
    def rows(self) -> Rows:
        """The rows of table `group_resume`."""
        return RowsInMemory.of(TABLE, [{**row, "group_id": row["group"]} for row in self.found])

    @property
    def has_findings(self) -> bool:
        """Whether consumers continue elsewhere than at their commit."""
        return any(row["reason"] != Reason.AT_COMMIT for row in self.found)

    def telling(self) -> list[dict[str, Any]]:
        """Return the row of each commit with the replica that leads now; where none is known to
        lead, those of other replicas with another answer, too."""
        led = [(row, self._led[_commit_of(row)]) for row in self.found]
        return [
            row for row, lead in led if row is lead or not (lead["leads_now"] or _same(row, lead))
        ]

    def words(self) -> list[str]:
        """Return a sentence for each group and reason for which its consumers do not continue at
        commits, of the first ones, and what other leaders change."""
        elsewhere: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.telling():
            if row["reason"] != Reason.AT_COMMIT:
                elsewhere[row["group"], row[_WHY]].append(row)
        lines = [_sentence(rows) for rows in [*elsewhere.values()][:_MOST_SENTENCES]]
        if len(elsewhere) > _MOST_SENTENCES:
            more = counted(len(elsewhere) - _MOST_SENTENCES, "sentence")
            lines.append(f"{more} more: --format json has all")
        others: dict[tuple[int, bool], list[dict[str, Any]]] = defaultdict(list)
        others_of: dict[tuple[Any, ...], bool] = {}
        for row in self.found:
            commit = _commit_of(row)
            lead = self._led[commit]
            if row is lead:
                continue
            is_same = _same(row, lead)
            others_of[commit] = others_of.get(commit, True) and is_same
            if lead["leads_now"] and not is_same:
                others[row["leader"], row["reason"] == Reason.AT_COMMIT].append(row)
        lines += [_other_leader(*key, rows) for key, rows in sorted(others.items())]
        if same := sum(others_of.values()):
            lines.append(
                f"for {counted(same, 'commit')} it makes no difference which replica here leads"
            )
        return [*lines, *self._of_longer_replicas()]

    def _of_longer_replicas(self) -> Iterator[str]:
        """Yield which partitions have a replica that is longer than the leader's, and in which
        partitions a commit is beyond the leader's end, but not beyond that of the replica."""
        longer, within = set(), set[str]()
        for row in self.found:
            lead, end = self._led[_commit_of(row)], row["log_end_offset"] or 0
            if end > (lead["log_end_offset"] or 0):
                longer.add((row["topic"], row["partition"]))
                if lead["reason"] == Reason.BEYOND_LOG_END and end >= (lead["current_offset"] or 0):
                    within.add(f"{row['topic']}-{row['partition']}")
        if within:
            yield (
                "another replica here is long enough for the commits beyond the end of the "
                f"leader's log of {first_names(sorted(within), _MOST_GROUPS)}: if the leader was "
                "copied earlier than that replica, the leader itself has these records, and the "
                "consumers continue at their commits; if all were copied at the same time, its log "
                "was truncated"
            )
        if longer:
            yield (
                f"in {counted(len(longer), 'partition')} another replica is longer than the "
                "leader's: TO-READ counts up to the leader's end, --lagging up to that of the other"
            )

    @cached_property
    def _led(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The first row of each commit."""
        return {_commit_of(row): row for row in reversed(self.found)}


def _commit_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["group"], row["topic"], row["partition"]


def _same(row: Mapping[str, Any], lead: Mapping[str, Any]) -> bool:
    return all(row[name] == lead[name] for name in _ANSWERS)


def _other_leader(broker: int, at_commit: bool, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the groups that a leader changes that does not lead now."""
    groups = sorted({row["group"] for row in rows})
    place = "at their commits" if at_commit else "elsewhere than at their commits"
    counts = {"come again": "records_again", "are skipped": "records_skipped"}
    sums = {words: sum(row[name] or 0 for row in rows) for words, name in counts.items()}
    records = (f", {counted(count, 'record')} {words}" for words, count in sums.items() if count)
    names = {(row["topic"], row["partition"]) for row in rows}
    return (
        f"if broker {broker} becomes the leader of {counted(len(names), 'partition')}, "
        f"{counted(len(rows), 'commit')} of {first_names(groups, _MOST_GROUPS)} "
        f"{'changes' if len(rows) == 1 else 'change'}: consumers "
        f"continue {place}{''.join(records)}; --format json shows these rows"
    )


def _sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about commits of a group that have the same reason."""
    row, *others = rows
    if not others:
        leader = "" if row["leader"] is None else f", led by broker {row['leader']}"
        place = f"{row['topic']}-{row['partition']}{leader}"
        return f"{row['group']} in {place}: {row['what_happens']}"
    names = [*dict.fromkeys(f"{row['topic']}-{row['partition']}" for row in rows)]
    parts = [row[_WHY], *_record_words(rows)]
    waiting = sum(row[_WAITS] for row in rows)
    if waiting:
        parts.append(f"for {waiting:,} of them another commit waits for its transaction")
    places = f"{counted(len(names), 'partition')} ({first_names(names, _MOST_PARTITIONS)})"
    return f"{row['group']} in {places}: {'; '.join(parts)}"


def _record_words(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how many records come again, and how many are skipped."""
    if again := sum(row["records_again"] or 0 for row in rows):
        yield f"{counted(again, 'record')} come again"
    if skipped := sum(row["records_skipped"] or 0 for row in rows):
        deleted = sum(
            max(int(row["log_start_offset"]) - (row["current_offset"] or 0), 0)
            for row in rows
            if row["records_skipped"]
        )
        of_them = f", {deleted:,} of them deleted" if deleted else ""
        yield f"{counted(skipped, 'record')} are skipped{of_them}"


class _Resume(NamedTuple):
    offset: int | None
    reason: Reason


def group_resume(views: Views, commits: pa.Table, request: ResumeRequest) -> GroupResume:
    """Return where consumers continue, of the commits and of the partitions that members have
    without one: rows of `LagRows.commits_alone`. Raises OSError."""
    by_log: dict[GroupPartition, list[CommitToResume]] = defaultdict(list)
    for commit in _commits_to_resume(commits):
        by_log[commit.topic, commit.partition].append(commit)
    replicas = {
        logs[0].topic_partition: logs
        for logs in live_replicas([log for log in views.logs if not is_oldest_layout(log)])
    }
    leaders = _leaders(views, {topic for topic, _ in by_log})
    run = partial(_rows, replicas=replicas, leaders=leaders, request=request)
    found = [row for rows in views.tasks(run, sorted(by_log.items())) for row in rows]
    in_order = sorted(found, key=lambda row: (row["group"], row["topic"], row["partition"]))
    return GroupResume(in_order)


def _commits_to_resume(rows: pa.Table) -> list[CommitToResume]:
    columns = ("group_id", "topic", "partition", "committed_offset", "leader_epoch")
    order = [(name, "ascending") for name in columns[:3]]
    more = ("commit_status", "has_open_commit", "group_type", DELIVERY_COMPLETE)
    found = rows.select([*columns, *more]).sort_by(order)
    return [
        CommitToResume(
            *(row["group_id"], row["topic"], row["partition"], row["committed_offset"]),
            *(row["leader_epoch"], row["commit_status"]),
            has_open_commit=bool(row["has_open_commit"]),
            is_share=row["group_type"] == "share",
            delivered=row[DELIVERY_COMPLETE] or 0,
        )
        for row in found.to_pylist()
    ]


def _leaders(views: Views, topics: Iterable[str]) -> dict[GroupPartition, int]:
    """Return who leads the partitions now, by the cluster's metadata in the input."""
    return {
        (topic, partition): broker
        for history in cluster_histories(views.logs).values()
        for topic in topics
        for partition, broker in history.leaders_of(topic).items()
    }


def _rows(
    item: tuple[GroupPartition, Sequence[CommitToResume]],
    replicas: Mapping[GroupPartition | None, Sequence[PartitionLog]],
    leaders: Mapping[GroupPartition, int],
    request: ResumeRequest,
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows about a partition, each of whose logs is read once."""
    key, commits = item
    logs = replicas.get(key, ())
    leader = leaders.get(key)
    by_leading = sorted(logs, key=lambda log: log.log_dir.broker_id != leader)
    rows: list[dict[str, Any]] = []
    for log in by_leading:
        found = [*_rows_of_replica(with_segments_of_now(log), commits, request)]
        leads = None if leader is None else log.log_dir.broker_id == leader
        rows += [{**row, "leads_now": leads} for row in found]
    if not logs:
        rows += [_row(commit, _Resume(None, Reason.NO_LOG), request) for commit in commits]
    yield rows


def _rows_of_replica(
    log: PartitionLog, commits: Sequence[CommitToResume], request: ResumeRequest
) -> Iterator[dict[str, Any]]:
    replica = Replica(log, request.now_ms)
    # A broker answers consumers by its file of epochs, also where the batches have others.
    epochs = replica.state.epochs if replica.other_epochs is None else replica.other_epochs
    state = replace(replica.state, epochs=tuple(epochs))
    if not replica.starts:
        for commit in commits:
            yield _row(commit, _Resume(None, Reason.NO_START), request, replica)
        return
    reset = _reset_offset(log, state, request)
    resumes = [_resume(commit, state, reset) for commit in commits]
    offsets = [state.log_end, *(each.offset for each in resumes)]
    offsets += [commit.committed_offset for commit in commits]
    known = {offset for offset in offsets if offset is not None}
    readable = _readable(log, sorted(known), request)
    for commit, resume in zip(commits, resumes, strict=True):
        row = _row(commit, resume, request, replica)
        committed, offset = commit.committed_offset, resume.offset
        if offset is not None:
            to_read = readable(offset) - readable(state.log_end)
            # F780: what was delivered is after the begin.
            row["to_read"] = max(to_read - (commit.delivered if offset == committed else 0), 0)
        is_of_log = commit.status not in _GONE_TOPICS
        if offset is not None and committed is not None and is_of_log:
            below = max(min(offset, state.log_start) - committed, 0)
            between = readable(min(offset, committed)) - readable(max(offset, committed))
            row["records_again"] = between if offset < committed else 0
            row["records_skipped"] = between + below if offset > committed else 0
        row["what_happens"] = _words(commit, resume, row)
        yield row


def _resume(commit: CommitToResume, state: ReplicaLog, reset: int | None) -> _Resume:
    """Return where a consumer continues, by the rules of its client and of the leader. F1235"""
    committed = commit.committed_offset
    if commit.is_share:
        return _share_resume(commit, state)
    if committed is None or commit.status == NO_COMMIT:
        return _Resume(reset, Reason.NO_COMMIT)
    if commit.status in _DROPPED or commit.status in _GONE_TOPICS:
        return _Resume(reset, Reason.DROPPED)
    offset = resumed_offset(state, committed, commit.leader_epoch)
    if offset is not None:
        reason = Reason.AT_COMMIT if offset == committed else Reason.EPOCH_ENDED
        return _Resume(offset, reason)
    is_below = committed < state.log_start
    return _Resume(reset, Reason.BELOW_LOG_START if is_below else Reason.BEYOND_LOG_END)


def _share_resume(commit: CommitToResume, state: ReplicaLog) -> _Resume:
    """Return where a share group continues: its leader moves a begin that was deleted to the log
    start, and lets one beyond the log end be. F1361"""
    begin = commit.committed_offset
    if begin is None or commit.status == NO_COMMIT:
        return _Resume(None, Reason.NO_COMMIT)
    if commit.status in _GONE_TOPICS:
        return _Resume(None, Reason.DROPPED)
    if begin < state.log_start:
        return _Resume(state.log_start, Reason.BELOW_LOG_START)
    return _Resume(begin, Reason.AT_COMMIT if begin <= state.log_end else Reason.BEYOND_LOG_END)


def _reset_offset(log: PartitionLog, state: ReplicaLog, request: ResumeRequest) -> int | None:
    """Return where auto.offset.reset begins, None for none. F1236"""
    policy, duration_ms = request.reset.policy, request.reset.duration_ms
    if duration_ms is not None:
        start_ms = request.now_ms - duration_ms
        found = time_answer(log, state.log_start, start_ms, None).offset
        return state.log_end if found is None else min(found, state.log_end)
    return {EARLIEST: state.log_start, LATEST: state.log_end}.get(policy)


def _readable(
    log: PartitionLog, offsets: Sequence[int], request: ResumeRequest
) -> Callable[[int], int]:
    """Return a function that gives the records that can be read from one of these offsets on."""
    table = with_accounts(
        pa.table({"committed_offset": of_values(offsets, pa.int64())}),
        log,
        read_committed=request.read_committed,
        now_ms=request.now_ms,
    )
    found = dict(zip(offsets, table["readable_records"].to_pylist(), strict=True))
    return lambda offset: found[offset] or 0


def _row(
    commit: CommitToResume, resume: _Resume, request: ResumeRequest, replica: Replica | None = None
) -> dict[str, Any]:
    row = dict.fromkeys(COLUMNS) | {
        "group": commit.group_id,
        "topic": commit.topic,
        "partition": commit.partition,
        "current_offset": commit.committed_offset,
        "resumes_at": resume.offset,
        "reason": str(resume.reason),
        _WAITS: commit.has_open_commit,
    }
    if replica is not None:
        row["leader"] = replica.broker_id
        row["log_start_offset"], row["log_end_offset"] = (
            replica.state.log_start,
            replica.state.log_end,
        )
    row[_WHY] = _why(commit, resume, request)
    if resume.reason is Reason.NO_START and replica is not None:
        row[_WHY] = f"{row[_WHY]}: {replica.plan.start_error}"
    row["what_happens"] = _words(commit, resume, row)
    return row


def _share_words(resume: _Resume) -> str:
    if resume.offset is None:
        return "the group's share.auto.offset.reset decides, latest by default"
    if resume.reason is Reason.BELOW_LOG_START:
        return "the share group begins at the log start"
    return "the share group gets no record written below it"


def _why(commit: CommitToResume, resume: _Resume, request: ResumeRequest) -> str:
    """Return why consumers that start continue where they do, without the offset."""
    why = {
        Reason.AT_COMMIT: "reads on at its commit",
        Reason.EPOCH_ENDED: "the leader epoch of the commit ended before it: Java's consumers go "
        "back to that end",
        Reason.BELOW_LOG_START: "what the commit points to was deleted",
        Reason.BEYOND_LOG_END: "the commit is beyond the end of the log",
        Reason.NO_COMMIT: "there is no commit",
        Reason.DROPPED: _DROPPED.get(commit.status, f"the commit does not count: {commit.status}"),
        Reason.NO_LOG: "the log is not in the input",
        Reason.NO_START: "the broker does not start",
    }[resume.reason]
    if not _is_reset(resume):
        return why
    if commit.is_share:
        return f"{why}; {_share_words(resume)}"
    policy = f"auto.offset.reset={request.reset}"
    if resume.offset is None:
        return f"{why}; {policy}: the consumer ends with an error"
    return f"{why}; {policy} decides"


def _is_reset(resume: _Resume) -> bool:
    return resume.reason not in (
        *(Reason.AT_COMMIT, Reason.EPOCH_ENDED, Reason.NO_LOG, Reason.NO_START),
    )


def _words(commit: CommitToResume, resume: _Resume, row: Mapping[str, Any]) -> str:
    """Return a sentence about what consumers that start get."""
    why = row[_WHY]
    if _is_reset(resume) and not commit.is_share and resume.offset is not None:
        why += f", and begins at {resume.offset}"
    parts = [why, *_record_words([row])]
    if commit.has_open_commit:
        parts.append(
            "another commit waits for the end of its transaction, and counts if it ends so"
        )
    return "; ".join(parts)
