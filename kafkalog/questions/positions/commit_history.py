"""How did the commits of a group move, and which moves left records unread?

Its commits come from `__consumer_offsets`, in their order; what is between two of them comes from
the logs, as these are now. Rules: docs/format.md F1230 to F1234.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_moves import LogBegin, Move, judge_moves
from kafkalog.coordination.groups.group_generations import GENERATION_COLUMNS, GroupGenerations
from kafkalog.coordination.groups.group_records import GroupKey, GroupPartition, group_key
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.inspection.groups.commit_reach import LogReach, commit_reaches, reach_words
from kafkalog.inspection.groups.complete_from import complete_from
from kafkalog.inspection.lag.lag_columns import with_accounts
from kafkalog.inspection.logs.missing_records import note_missing_records
from kafkalog.inspection.logs.replica_facts import best_logs, leader_epochs, replica_sets
from kafkalog.questions.groups.group_parts import refuse_unknown_groups
from kafkalog.storage.files.files import modified_ms
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.views.engine import AskedView, Batches, Options, Rows, RowsInMemory, Views
from kafkalog.views.options.options import Replicas
from kafkalog.words import counted, time_text

TABLE = "commit_history"
COMMIT, DELETION, END = "commit", "deletion", "end"
_COMMIT_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "topic", "partition", "committed_offset"),
    *("commit_timestamp_ms", "record_timestamp_ms", "record_offset", "effective_offset"),
    *("effective_timestamp_ms", "effect", "is_tombstone", "is_transactional", "metadata", "file"),
)
_ACCOUNT = (
    *("readable_records", "below_log_start", "in_tiered_storage", "damaged", "ahead_of_log"),
    *("next_timestamp_ms", "log_start_offset"),
)
_MOST_SENTENCES = 20
_Place = tuple[GroupKey, GroupPartition]


class _Members(NamedTuple):
    """Where in its partition of `__consumer_offsets` each generation of a group is, with how many
    members, and when."""

    record_offsets: list[int]
    members: list[int]
    times_ms: list[int | None]


class _Step(NamedTuple):
    """A commit, with where its record is, of rows of view `offset_commits`."""

    record_offset: int
    move: Move


class CommitHistory(NamedTuple):
    """Rows of table `commit_history`, in the order of groups, partitions and commits, what to say
    about how far back they reach, and from when on they are judged, None for from the first on."""

    rows: Rows
    reach: str
    complete_from_ms: int | None

    @property
    def has_findings(self) -> bool:
        """Whether a commit moved in a way that is a finding."""
        return any(row["finding"] is not None for row in self.rows)

    def words(self) -> Iterator[str]:
        """Yield lines: what was found in which partition, and from when on commits are known."""
        found = [row for row in self.rows if row["words"] is not None]
        many = len({row["group_id"] for row in found}) > 1
        for row in found[:_MOST_SENTENCES]:
            group = f"{row['group_id']} in " if many else ""
            yield f"{group}{row['topic']}-{row['partition']}: {row['words']}"
        if len(found) > _MOST_SENTENCES:
            more = counted(len(found) - _MOST_SENTENCES, "finding")
            yield f"{more} more: --format json has all"
        if self.rows.is_empty:
            yield (
                "the groups have no commit here; share groups commit nothing: kafkalog groups "
                "shows where they are now"
            )
        elif not found:
            since, earlier = "", ""
            if self.complete_from_ms is not None:
                since = f" from {time_text(self.complete_from_ms)} on"
                earlier = "; earlier ones are not judged: cleaning removed some"
            moved = "jumped over records, went back, or was deleted, by what is here"
            yield f"no commit{since} {moved}{earlier}"
        yield self.reach


def commit_history(views: Views, question: LagQuestion, option: str = "--group") -> CommitHistory:
    """Return the history of the commits of the groups, all if none are named, up to a past time or
    to now; `option` has named them. Raises OptionError for a group that has neither commits nor
    records, LogDirError where records are missing that may be about it."""
    copies = replica_sets([log for log in views.logs if log.topic == CONSUMER_OFFSETS])
    commits, records = _read(views, question, copies)
    reaches = [*views.tasks(_reach, [found for found in copies if found.best.is_live])]
    known = {key.group_id for key, _ in commits} | {record["group_id"] for record in records}
    unknown = question.chosen.groups - known
    refuse_unknown_groups(views, option, unknown)
    members = _members(records)
    complete = {reach.internal_partition: reach.complete_from_ms for reach in reaches}
    by_log: dict[GroupPartition, list[tuple[_Place, list[_Step]]]] = defaultdict(list)
    for place, found in commits.items():
        steps = _steps(found, members.get(place[0]), complete.get(place[0].internal_partition))
        by_log[place[1]].append((place, steps))
    logs = {log.topic_partition: log for log in best_logs(views.logs)}
    run = partial(_judged, logs=logs, question=question)
    rows = [row for found in views.tasks(run, sorted(by_log.items())) for row in found]
    rows.sort(key=lambda row: (row["group_id"], row["topic"], row["partition"]))
    missing = note_missing_records(views.logs, CONSUMER_OFFSETS)
    words = reach_words(commit_reaches(reaches, missing), question.as_of_ms)
    known_ms = [each.complete_from_ms for each in reaches if each.complete_from_ms is not None]
    return CommitHistory(RowsInMemory.of(TABLE, rows), words, max(known_ms, default=None))


def _read(
    views: Views, question: LagQuestion, copies: Iterable[ReplicaSet]
) -> tuple[dict[_Place, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return the commits that took effect, by group and partition in their order, and the records
    about the groups in theirs: of all copies of a partition, as far as they are of the best one's
    log, for the cleaner has not removed the same from each. F1360"""
    ends = {log.path: end for found in copies for log, end in found.logs_and_ends}
    names = pa.array(sorted(question.chosen.groups), pa.string())

    def of_groups(batches: Batches) -> Batches:
        for batch in batches:
            found = pc.is_in(batch["group_id"], names) if len(names) else None
            found = batch.filter(pc.is_valid(batch["group_id"]) if found is None else found)
            files = found["file"].to_pylist()
            own_ends = [ends.get(os.path.dirname(file), LARGEST_OFFSET) for file in files]
            yield found.filter(pc.less(found["record_offset"], of_values(own_ends, pa.int64())))

    of_topic: Options = {"subscribe": CONSUMER_OFFSETS, "replicas": Replicas.ALL.value}
    asked = [
        AskedView(view, columns, of_groups, arrow_schema(view, columns), of_topic)
        for view, columns in (
            ("offset_commits", _COMMIT_COLUMNS),
            ("group_metadata", (*GENERATION_COLUMNS, "file")),
        )
    ]
    commits, records = views.rows(*asked)
    found: dict[_Place, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in commits:
        at_ms = _effective_ms(row)
        is_later = question.as_of_ms is not None and at_ms > question.as_of_ms
        if row["effect"] == "applied" and row["topic"] is not None and not is_later:
            place = group_key(row), (row["topic"], row["partition"])
            found[place].setdefault(row["effective_offset"], row)
    once = {(group_key(row), row["record_offset"]): row for row in records}
    in_order = sorted(once.values(), key=lambda row: int(row["record_offset"]))
    return {
        place: [by_offset[offset] for offset in sorted(by_offset)]
        for place, by_offset in found.items()
    }, in_order


def _effective_ms(row: Mapping[str, Any]) -> int:
    """Return when a commit took effect, by the coordinator's clock."""
    times = ("effective_timestamp_ms", "commit_timestamp_ms", "record_timestamp_ms")
    return next((int(row[name]) for name in times if row[name] is not None), 0)


def _reach(copies: ReplicaSet) -> Iterator[LogReach]:
    """Yield how far back the commits of a partition of `__consumer_offsets` reach: one copy after
    another goes on where what is complete so far begins. F1360"""
    offset, time_ms, damaged_ranges, _ = complete_from(copies.best)
    others = [(complete_from(log), end) for log, end in copies.logs_and_ends[1:]]
    for complete, end in sorted(others, reverse=True):
        if complete.offset < offset <= end:
            offset, time_ms, *_ = complete
    yield LogReach(copies.best.partition, time_ms, damaged_ranges)


def _members(records: Iterable[Mapping[str, Any]]) -> dict[GroupKey, _Members]:
    """Return how many members each group had when."""
    generations = GroupGenerations()
    for record in records:
        generations.add(record)
    found: dict[GroupKey, _Members] = defaultdict(lambda: _Members([], [], []))
    for row in sorted(generations.rows(), key=lambda row: int(row["record_offset"])):
        # The deletion of a group has no members.
        count = row.get("members")
        if count is None and row.get("state") != "Dead":
            continue
        offsets, members, times = found[group_key(row)]
        offsets.append(row["record_offset"])
        members.append(count or 0)
        times.append(row["record_timestamp_ms"])
    return dict(found)


def _steps(
    rows: Sequence[Mapping[str, Any]], members: _Members | None, complete_ms: int | None
) -> list[_Step]:
    """Return the moves of a partition's commits, without what its log says of them. F324"""
    steps: list[_Step] = []
    before: Move | None = None
    for row in rows:
        offset = row["committed_offset"]
        is_gone = row["is_tombstone"] or offset is None or offset < 0
        move = Move(_effective_ms(row), row["record_offset"], None if is_gone else offset)
        if before is not None and before.committed_offset is not None:
            move.previous_offset, move.previous_ms = before.committed_offset, before.at_ms
            move.is_next = complete_ms is None or before.at_ms >= complete_ms
        if members is not None:
            since = None if before is None else before.record_offset
            move.members, move.joined_ms = _membership(members, since, move.record_offset)
        steps.append(_Step(row["record_offset"], move))
        before = move
    return steps


def _membership(
    members: _Members, since: int | None, record_offset: int
) -> tuple[int | None, int | None]:
    """Return how many members a group had where a commit is, and when it got members again after
    the commit before, whose record is at `since`; None if it had them all the time."""
    number = bisect_right(members.record_offsets, record_offset) - 1
    if number < 0:
        return None, None
    joined_ms = None
    first = bisect_right(members.record_offsets, record_offset if since is None else since)
    was_empty = first > 0 and not members.members[first - 1]
    for place in range(first, number + 1):
        if was_empty and members.members[place]:
            joined_ms = members.times_ms[place]
        was_empty = not members.members[place]
    return members.members[number], joined_ms


def _judged(
    item: tuple[GroupPartition, list[tuple[_Place, list[_Step]]]],
    logs: Mapping[GroupPartition | None, PartitionLog],
    question: LagQuestion,
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of all groups of a partition, for which its log is read once."""
    key, places = item
    log = logs.get(key)
    log = None if log is None else with_segments_of_now(log)
    offsets = sorted(
        {
            step.move.committed_offset
            for _, steps in places
            for step in steps
            if step.move.committed_offset is not None
        }
    )
    account = _accounts(log, offsets, question)
    begin = log_begin(log)
    rows = []
    for (group, _), steps in places:
        moves = [step.move for step in steps]
        for move in moves:
            _measure(move, account)
        judge_moves(moves, begin)
        rows += [_row(group, key, move) for move in moves]
        rows.append(_end_row(group, key, moves[-1], account, question))
    yield rows


_Account = Callable[[int | None], Mapping[str, Any] | None]


def _accounts(log: PartitionLog | None, offsets: Sequence[int], question: LagQuestion) -> _Account:
    """Return a function that gives what the log has after an offset that was committed."""
    table = with_accounts(
        pa.table({"committed_offset": of_values(offsets, pa.int64())}),
        log,
        read_committed=question.read_committed,
        now_ms=question.now_ms,
    )
    columns = {name: table[name].to_pylist() for name in _ACCOUNT}
    numbers = {offset: number for number, offset in enumerate(offsets)}

    def account(offset: int | None) -> Mapping[str, Any] | None:
        number = None if offset is None else numbers.get(offset)
        if number is None or columns["readable_records"][number] is None:
            return None
        return {name: values[number] for name, values in columns.items()}

    return account


def _measure(move: Move, account: _Account) -> None:
    """Set what is between a commit and the one before it; nothing is known beyond the log's end."""
    before, after = account(move.previous_offset), account(move.committed_offset)
    if before is None or after is None or before["ahead_of_log"] or after["ahead_of_log"]:
        return

    def between(*names: str) -> int:
        return abs(sum(int(before[name] - after[name]) for name in names))

    move.records_between = between("readable_records")
    move.deleted_between = between("below_log_start")
    move.hidden_between = between("in_tiered_storage", "damaged")
    next_ms = before["next_timestamp_ms"]
    move.had_backlog = next_ms is not None and next_ms < (move.previous_ms or 0)


def log_begin(log: PartitionLog | None) -> LogBegin:
    """Return where a log begins, and since when at the latest: a broker writes the epochs of a log
    that lost its beginning, the first of which begins there then (F1230). Raises OSError."""
    epochs = () if log is None else leader_epochs(log)
    if log is None or not epochs:
        return LogBegin(None, None)
    log_start = log_bounds(log, EndRule.LOG_END).start_offset
    if epochs[0].start_offset != log_start:
        return LogBegin(log_start, None)
    try:
        return LogBegin(log_start, modified_ms(os.path.join(log.path, LEADER_EPOCHS)))
    except FileNotFoundError:
        return LogBegin(log_start, None)


def _row(group: GroupKey, place: GroupPartition, move: Move) -> dict[str, Any]:
    return {
        "cluster_id": group.cluster_id,
        "group_id": group.group_id,
        "topic": place[0],
        "partition": place[1],
        "event": DELETION if move.committed_offset is None else COMMIT,
        "at_ms": move.at_ms,
        "committed_offset": move.committed_offset,
        "jump": move.jump,
        "records_between": move.records_between,
        "deleted_between": move.deleted_between,
        "hidden_between": move.hidden_between,
        "elapsed_ms": move.elapsed_ms,
        "members": move.members,
        "finding": move.finding,
        "words": move.words,
        "record_offset": move.record_offset,
    }


def _end_row(
    group: GroupKey, place: GroupPartition, last: Move, account: _Account, question: LagQuestion
) -> dict[str, Any]:
    """Return the row about what is after the last commit, in the log as it is."""
    at_ms = question.now_ms
    row = dict.fromkeys(_row(group, place, last)) | {
        "cluster_id": group.cluster_id,
        "group_id": group.group_id,
        "topic": place[0],
        "partition": place[1],
        "event": END,
        "at_ms": at_ms,
        "committed_offset": last.committed_offset,
    }
    found = account(last.committed_offset)
    if found is None:
        return row
    row["records_between"] = found["readable_records"]
    row["deleted_between"] = found["below_log_start"]
    row["hidden_between"] = found["in_tiered_storage"] + found["damaged"]
    if found["below_log_start"]:
        row["finding"] = "lost"
        row["words"] = (
            f"{counted(found['below_log_start'], 'message')} after the last commit, "
            f"{last.committed_offset} of {time_text(last.at_ms)}, were deleted before the group "
            f"committed again: the log begins at {found['log_start_offset']}"
        )
    elif found["ahead_of_log"]:
        row["finding"] = "ahead"
        ahead = counted(found["ahead_of_log"], "offset")
        row["words"] = (
            f"the last commit, {last.committed_offset}, is {ahead} beyond the end of the log: the "
            "log was truncated, the topic was made again, or a consumer committed what it had not "
            "read"
        )
    return row
