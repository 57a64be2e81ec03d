"""The rows of table `consumer_lag`, made by tasks.

Two steps: a task reads partitions of `__consumer_offsets` and passes on the commits that count;
then a task has the commits about some logs and makes rows of table `consumer_lag`. Between the
steps rows are bytes of Arrow. Reasons: docs/decisions/0034 and 0045.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import distinct_rows, fixed_width, no_rows, of_values
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_status import KnownTopics, is_confirmed
from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupMember, GroupPartition
from kafkalog.coordination.groups.lag_question import FoundNames, LagQuestion, all_names
from kafkalog.coordination.groups.share_states import SharePartition, ShareState
from kafkalog.inspection.groups.commit_reach import LogReach
from kafkalog.inspection.groups.placed_commits import (
    PLACED_SCHEMA,
    PlacedShares,
    of_placed_schema,
    with_statuses,
)
from kafkalog.inspection.lag.chosen_rows import chosen_rows, found_names, group_count, group_digests
from kafkalog.inspection.lag.lag_table import (
    LOG_COLUMNS,
    TABLE,
    LagSummary,
    LogPlace,
    by_log,
    lag_table,
    summed,
)
from kafkalog.inspection.logs.past_copies import copies_at_time
from kafkalog.inspection.logs.replica_facts import replica_sets
from kafkalog.inspection.partitions.transactions import PastTime
from kafkalog.questions.groups.cluster_facts import ClusterFacts
from kafkalog.questions.groups.group_parts import GroupsPart, RowsSummary, group_parts, placed_part
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.partition_log import PartitionLog, bytes_in
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.engine import Rows, Step, Views
from kafkalog.views.options.options import view_options
from kafkalog.views.reading.work_log import READ, reported_work

if TYPE_CHECKING:
    from kafkalog.lake.layout import TableOutput
    from kafkalog.lake.written_file import OnReport, WrittenFile

_ROWS_PER_BATCH = 65_536
# A commit takes 80 bytes of `__consumer_offsets` at least: a bucket has 400,000 rows at most, fewer
# where that keeps all cores busy.
_BYTES_PER_BUCKET, _LEAST_BYTES = 32 * 1024 * 1024, 4 * 1024 * 1024
# Of logs, of which a task reads headers; to so many buckets each task can pass rows on.
_LOG_BYTES_PER_BUCKET, _MOST_BUCKETS = 1024 * 1024 * 1024, 4096
# The place that knows how all rows were read.
_SUMMARIES = 0
# The column of rows that come with what their task knows of them.
_SUMMARY = "summary"


class _GroupCounts(NamedTuple):
    """How many groups a task has found of a cluster, and how many of them are where the number of
    partitions of `__consumer_offsets` says."""

    cluster_id: str | None
    in_place: int
    groups: int


class CommitsRead(NamedTuple):
    """What tasks know that have read commits: the digests of groups that have rows, the given names
    that rows have, how far back commits go, the groups of which a commit waits, the topics that
    groups read, and where they are wanted all groups, and their members."""

    digests: bytes = b""
    names: FoundNames = FoundNames()
    reaches: tuple[LogReach, ...] = ()
    waiting: frozenset[GroupKey] = frozenset()
    topics: frozenset[str] = frozenset()
    groups: tuple[Group, ...] = ()
    members: tuple[GroupMember, ...] = ()

    @classmethod
    def of(cls, summary: RowsSummary, *, with_groups: bool, with_members: bool) -> CommitsRead:
        """Return what the summary of a partition says."""
        return cls(
            *(summary.digests, summary.names, summary.reaches, summary.waiting, summary.topics),
            groups=tuple(summary.groups.values()) if with_groups else (),
            members=tuple(summary.members) if with_members else (),
        )

    @classmethod
    def of_all(cls, reads: Sequence[CommitsRead]) -> CommitsRead:
        """Return what several know."""
        return cls(
            b"".join(each.digests for each in reads),
            all_names(each.names for each in reads),
            tuple(reach for each in reads for reach in each.reaches),
            frozenset().union(*(each.waiting for each in reads)),
            frozenset().union(*(each.topics for each in reads)),
            tuple(group for each in reads for group in each.groups),
            tuple(member for each in reads for member in each.members),
        )

    @property
    def group_count(self) -> int:
        """How many groups have rows."""
        return group_count(self.digests)


class _Made(NamedTuple):
    """What is known of the rows of a place, and what it has received from tasks that read."""

    summary: LagSummary
    reads: tuple[CommitsRead, ...]


# Rows as a stream of Arrow, or what is known.
_Passed = bytes | _GroupCounts | CommitsRead


class LagRows:
    """The rows of table `consumer_lag`, which tasks have still to make. `summary` has `show` of
    those with most to read, and `known` is what reading has shown, once the rows are made."""

    def __init__(
        self,
        views: Views,
        facts: ClusterFacts,
        question: LagQuestion,
        *,
        show: int = 0,
        with_groups: bool = False,
        with_members: bool = False,
        cluster_id: str | None = None,
        in_zookeeper: pa.Table | None = None,
    ) -> None:
        """`in_zookeeper` are commits of groups that commit to ZooKeeper, and `cluster_id` that of
        log directories that name none. `with_groups`: all groups are wanted too, `with_members`:
        their members."""
        self.summary, self.known = summed([], show), CommitsRead()
        self._views, self._facts, self._question = views, facts, question
        self._show, self._in_zookeeper = show, in_zookeeper
        self._wanted = {"with_groups": with_groups, "with_members": with_members}
        self._options = view_options(views.log_dirs, "offset_commits", **views.options)
        at_ms, now_ms = question.as_of_ms, question.now_ms
        self._past = None if at_ms is None else PastTime(at_ms, now_ms)
        self._parts = group_parts(self._options, views, cluster_id, self._past)
        log_bytes = bytes_in(views.logs)
        size = sum(part.size for part in self._parts)
        self._buckets = _bucket_count(size, log_bytes, views.cores)

    @property
    def past_copies(self) -> list[PartitionLog]:
        """The logs that are read in the place of the best replicas, for a past time. F1294"""
        return [log for part in self._parts if part.is_past_copy for log in part.logs]

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Run the tasks, which write the rows to files and report these; return the files."""
        from kafkalog.lake.file_schemas import file_metadata
        from kafkalog.lake.table_writer import TableWriter, removed_on_error
        from kafkalog.lake.written_file import Report

        make = self._making()

        def write(
            bucket: int, received: Iterator[_Passed]
        ) -> Iterator[tuple[list[WrittenFile], _Made]]:
            rows, made = make(bucket, received)
            with removed_on_error(TableWriter(output)) as writer:
                ordered, runs = by_log(rows)
                described = ordered.replace_schema_metadata(file_metadata(TABLE))
                for key, begin, end in runs:
                    for batch in described.slice(begin, end - begin).to_batches():
                        writer.write(batch, key)
                files = writer.close()
            report(Report(0, tuple(files)))
            yield files, made

        done = [*self._shuffled(write)]
        self._take([made for _, made in done])
        return [file for files, _ in done for file in files]

    def rows(self) -> Rows:
        """Return the rows, which tasks make now."""
        make = self._making()
        struct = pa.struct(list(arrow_schema(TABLE)))
        schema = pa.schema([(TABLE, struct), (_SUMMARY, pa.binary())])

        def rows_and_summary(bucket: int, received: Iterator[_Passed]) -> Iterator[pa.RecordBatch]:
            rows, made = make(bucket, received)
            for batch in rows.to_batches():
                structs = pa.StructArray.from_arrays(batch.columns, fields=list(struct))
                nothing = pa.nulls(len(batch), pa.binary())
                yield pa.RecordBatch.from_arrays([structs, nothing], schema=schema)
            known = of_values([pickle.dumps(made)], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.nulls(1, struct), known], schema=schema)

        step = Step(rows_and_summary, self._buckets)
        found = self._views.shuffled_rows(self._reading(), self._items(), schema, step)
        known = found.column(_SUMMARY).drop_null().to_pylist()
        self._take([pickle.loads(each) for each in known])
        return found.of_table(TABLE)

    def _shuffled(
        self, make: Callable[[int, Iterator[_Passed]], Iterable[tuple[list[WrittenFile], _Made]]]
    ) -> Iterator[tuple[list[WrittenFile], _Made]]:
        step = Step(make, self._buckets)
        yield from self._views.shuffled(self._reading(), self._items(), step)

    def groups_alone(self) -> CommitsRead:
        """Return what reading shows, without rows: no log of another topic is read."""
        read = self._reading()

        def known(item: Sequence[_NumberedPart] | pa.Table) -> Iterator[CommitsRead]:
            yield from (each for _, each in read(item) if isinstance(each, CommitsRead))

        self.known = CommitsRead.of_all([*self._views.tasks(known, self._items())])
        return self.known

    def commits_alone(self) -> pa.Table:
        """Return the commits and the assigned partitions with PLACED_SCHEMA and their statuses: no
        log of another topic is read, and none is beyond a log's end."""
        read = self._reading()

        def passed(item: Sequence[_NumberedPart] | pa.Table) -> Iterator[_Passed]:
            # What all places get counts once.
            yield from (
                each
                for place, each in read(item)
                if place == 0 or not isinstance(each, _GroupCounts)
            )

        rows, confirmed, reads = _sorted_out(self._views.tasks(passed, self._items()))
        self.known = CommitsRead.of_all(reads)
        topics = KnownTopics(self._facts.topics_by_name(), confirmed)
        return with_statuses(rows, topics, self._question)

    def _take(self, found: Sequence[_Made]) -> None:
        self.summary = summed([each.summary for each in found], self._show)
        self.known = CommitsRead.of_all([read for each in found for read in each.reads])

    def _items(self) -> list[Sequence[_NumberedPart] | pa.Table]:
        numbered = [_NumberedPart(part, number) for number, part in enumerate(self._parts)]
        size = TaskSize(self._options.max_partition_bytes, cores=self._views.cores)
        given = [] if self._in_zookeeper is None else [self._in_zookeeper]
        return [*packed(numbered, size), *given]

    def _reading(
        self,
    ) -> Callable[[Sequence[_NumberedPart] | pa.Table], Iterator[tuple[int, _Passed]]]:
        """Return a function that reads commits, and passes them on by the buckets of their logs."""
        options, chosen, buckets = self._options, self._question.chosen, self._buckets
        at_ms, names = self._question.as_of_ms, self._facts.topic_names()
        facts = [self._facts.of_partition(each.cluster_id, each.partition) for each in self._parts]
        shares, wanted = _placed(self._facts.shares, names), self._wanted

        def of_parts(numbered: Sequence[_NumberedPart]) -> Iterator[tuple[int, _Passed]]:
            use_file_access(options.file_access)
            waiting: list[pa.Table] = []
            summaries: list[RowsSummary] = []
            with reported_work(READ, {"reads": str(len(numbered))}):
                for part, number in numbered:
                    rows, summary = placed_part(
                        *(part, options, at_ms),
                        topic_names=names,
                        facts=facts[number],
                        chosen=chosen,
                        shares=shares,
                    )
                    summaries.append(summary)
                    waiting.append(rows)
                    if sum(map(len, waiting)) >= _ROWS_PER_BATCH:
                        yield from _divided(pa.concat_tables(waiting), buckets)
                        waiting.clear()
            if waiting:
                yield from _divided(pa.concat_tables(waiting), buckets)
            known = [CommitsRead.of(each, **wanted) for each in summaries]
            yield _SUMMARIES, CommitsRead.of_all(known)
            for counts in _counts(summaries):
                # All places judge by them.
                yield from ((bucket, counts) for bucket in range(buckets))

        def read(item: Sequence[_NumberedPart] | pa.Table) -> Iterator[tuple[int, _Passed]]:
            if not isinstance(item, pa.Table):
                yield from of_parts(item)
                return
            rows = chosen_rows(of_placed_schema(item), chosen)
            yield _SUMMARIES, CommitsRead(group_digests(rows), found_names(rows, chosen))
            yield from _divided(rows, buckets)

        return read

    def _making(self) -> Callable[[int, Iterator[_Passed]], tuple[pa.Table, _Made]]:
        """Return a function that makes the rows of a bucket."""
        topics, question, show = self._facts.topics_by_name(), self._question, self._show
        places = [pickle.dumps(each) for each in self._log_places()]

        def make(bucket: int, received: Iterator[_Passed]) -> tuple[pa.Table, _Made]:
            commits, confirmed, reads = _sorted_out(received)
            own = pickle.loads(places[bucket])
            rows = (
                lag_table(commits, own, KnownTopics(topics, confirmed), question)
                if len(commits)
                else arrow_schema(TABLE).empty_table()
            )
            return rows, _Made(LagSummary.of(rows, show), tuple(reads))

        return make

    def _log_places(self) -> list[dict[tuple[str, int], LogPlace]]:
        """Return where the logs are of each bucket; a task unpickles those of its own."""
        found: list[dict[tuple[str, int], LogPlace]] = [{} for _ in range(self._buckets)]
        for log in self._logs():
            if log.topic is not None and log.partition is not None:
                key = log.topic, log.partition
                found[_bucket(key, self._buckets)][key] = LogPlace(log.path, log.log_dir.broker_id)
        return found

    def _logs(self) -> list[PartitionLog]:
        """Return the replica of each partition that counts: the best one, and for a past time,
        where retention or the cleaner has removed some, the one that has most of it. F1294"""
        logs = [log for log in self._views.logs if log.is_live and not is_oldest_layout(log)]
        sets, past = replica_sets(logs), self._past
        if past is None:
            return [each.best for each in sets]
        return copies_at_time(sets, self._views.tasks, at_ms=past.at_ms, now_ms=past.now_ms)


def _sorted_out(
    received: Iterable[_Passed],
) -> tuple[pa.Table, frozenset[str | None], list[CommitsRead]]:
    """Return what a place has received: rows with PLACED_SCHEMA, the clusters whose number of
    partitions of `__consumer_offsets` `is_confirmed`, and what tasks know."""
    tables = [no_rows(PLACED_SCHEMA)]
    reads: list[CommitsRead] = []
    counts: dict[str | None, list[int]] = defaultdict(lambda: [0, 0])
    for each in received:
        if isinstance(each, bytes):
            tables.append(pa.ipc.open_stream(each).read_all())
        elif isinstance(each, _GroupCounts):
            counts[each.cluster_id][0] += each.in_place
            counts[each.cluster_id][1] += each.groups
        else:
            reads.append(each)
    confirmed = frozenset(key for key, numbers in counts.items() if is_confirmed(*numbers))
    return pa.concat_tables(tables), confirmed, reads


class _NumberedPart(NamedTuple):
    part: GroupsPart
    number: int

    @property
    def size(self) -> int:
        return self.part.size


def _placed(shares: Mapping[SharePartition, ShareState], names: Mapping[str, str]) -> PlacedShares:
    """Return where share groups are, by the names of topics."""
    found: dict[tuple[str | None, str], dict[GroupPartition, ShareState]] = defaultdict(dict)
    for place, state in shares.items():
        partition = names.get(place.topic_id, place.topic_id), place.partition
        found[place.cluster_id, place.group_id][partition] = state
    return dict(found)


def _counts(summaries: Iterable[RowsSummary]) -> Iterator[_GroupCounts]:
    by_cluster: dict[str | None, list[RowsSummary]] = defaultdict(list)
    for each in summaries:
        by_cluster[each.cluster_id].append(each)
    for cluster_id, own in by_cluster.items():
        in_place = sum(each.groups_in_place for each in own)
        yield _GroupCounts(cluster_id, in_place, sum(len(each.groups) for each in own))


def _bucket_count(commit_bytes: int, log_bytes: int, cores: int) -> int:
    for_commits = max(
        commit_bytes // _BYTES_PER_BUCKET, min(2 * cores, commit_bytes // _LEAST_BYTES), 1
    )
    return max(for_commits, min(for_commits + log_bytes // _LOG_BYTES_PER_BUCKET, _MOST_BUCKETS))


def _divided(rows: pa.Table, buckets: int) -> Iterator[tuple[int, bytes]]:
    """Yield rows by the buckets of their logs."""
    logs = rows.select(LOG_COLUMNS)
    codes, firsts = distinct_rows(logs)
    names = logs.take(fixed_width(firsts, pa.int64())).to_pydict()
    of_logs = [_bucket(log, buckets) for log in zip(*names.values(), strict=True)]
    of_rows = np.array(of_logs, dtype=np.int64)[codes]
    for bucket in sorted(set(of_logs)):
        numbers = fixed_width(np.flatnonzero(of_rows == bucket), pa.int64())
        yield bucket, _streamed(rows.take(numbers))


def _bucket(log: tuple[str, int], buckets: int) -> int:
    topic, partition = log
    return crc32(f"{topic}-{partition}".encode()) % buckets


def _streamed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks(), max_chunksize=_ROWS_PER_BATCH)
    return bytes(sink.getvalue().to_pybytes())
