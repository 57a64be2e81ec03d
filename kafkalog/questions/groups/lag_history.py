"""How far behind was each group, and in which status, at each commit or moment of the past?

Two steps: tasks read partitions of `__consumer_offsets` and pass on blocks of commits; then a task
has all commits for some logs. A row is made complete where its log is read, and leaves that task as
part of a file, if it is to be written. Reasons: docs/decisions/0046. Rules: docs/format.md F310 to
F317, F330 to F339.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from kafkalog.columns.arrays import of_values, python_rows
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.group_generations import GroupGenerations
from kafkalog.coordination.groups.group_statuses import GroupStatus, group_statuses
from kafkalog.coordination.groups.lag_question import LagHistoryQuestion
from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.inspection.groups.commit_reach import (
    CommitReach,
    LogReach,
    commit_reaches,
    reach_words,
)
from kafkalog.inspection.lag.history_commits import (
    HISTORY_COLUMNS,
    CommitBlock,
    CommitBlocks,
    commits_by_log,
    place_of,
)
from kafkalog.inspection.lag.lag_history import TABLE, history_rows
from kafkalog.inspection.logs.missing_records import note_missing_records
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.lake.file_schemas import file_metadata
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.table_writer import TableWriter, removed_on_error
from kafkalog.lake.written_file import OnReport, Report, WrittenFile
from kafkalog.questions.groups.group_parts import GroupsPart, PartReaches, group_parts, known_names
from kafkalog.questions.groups.history_summary import (
    GENERATIONS,
    HistorySummary,
    ReadSummary,
    RowsSeen,
    generation_batch,
    summed,
)
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.storage.partition_log import segment_sizes
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.engine import Rows, RowsInMemory, Step, Views
from kafkalog.views.options.options import view_options
from kafkalog.views.reading.commit_reading import all_rows
from kafkalog.views.reading.group_reading import read_group_records
from kafkalog.views.reading.work_log import READ, reported_work
from kafkalog.words import counted, first_names

# All summaries go to one task.
_SUMMARIES = 0
# Of `__consumer_offsets`: a task has 400,000 commits at most, of 80 bytes or more, and a file their
# rows. Fewer where that keeps all cores busy.
_BYTES_PER_TASK, _LEAST_BYTES = 32 * 1024 * 1024, 4 * 1024 * 1024
# Of data, of which a task reads the headers.
_LOG_BYTES_PER_TASK = 1024 * 1024 * 1024
# The column of rows that come with what their task knows of them.
_SUMMARY = "summary"
_MOST_NAMED = 5
_STATUS_ORDER = ("OK", "UNKNOWN", "WARN", "ERR")

_Rows = Iterator[tuple[tuple[str, int], pa.RecordBatch]]
_Passed = Iterator[tuple[int, CommitBlock | ReadSummary]]
_Batches = Iterator[pa.RecordBatch]


class HistoryRows:
    """The rows of table `lag_history`, which tasks have still to make. `summary` sums them up once
    tasks have made them."""

    def __init__(
        self, views: Views, question: LagHistoryQuestion, zookeeper: ZookeeperCluster | None
    ) -> None:
        self._views, self._question, self._zookeeper = views, question, zookeeper
        self._options = view_options(views.log_dirs, "offset_commits", **views.options)
        cluster_id = None if zookeeper is None else zookeeper.cluster.cluster_id
        parts = group_parts(self._options, views, cluster_id)
        size = TaskSize(self._options.max_partition_bytes, cores=views.cores)
        self._groups = packed(parts, size)
        self._places = _task_count(views)
        self.summary = HistorySummary()

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Run the tasks, which write the rows to files and report these; return the files."""
        make, chosen, places = self._making(), self._question.chosen, self._places

        def write(
            place: int, received: Iterator[CommitBlock | ReadSummary]
        ) -> Iterator[tuple[list[WrittenFile], HistorySummary]]:
            reads: list[ReadSummary] = []
            seen = RowsSeen(chosen)
            with removed_on_error(TableWriter(output)) as writer:
                for key, batch in make(place, _blocks(received, reads)):
                    writer.write(batch.replace_schema_metadata(file_metadata(TABLE)), key)
                    seen.add(batch)
                files = writer.close()
            report(Report(0, tuple(files)))
            yield files, seen.summary(reads)

        done = [*self._views.shuffled(self._reading(), self._items(), Step(write, places))]
        self.summary = summed([summary for _, summary in done])
        return [file for files, _ in done for file in files]

    def rows(self) -> Rows:
        """Return the rows, which tasks make now."""
        make, chosen, places = self._making(), self._question.chosen, self._places
        struct = pa.struct(list(arrow_schema(TABLE)))
        schema = pa.schema([(TABLE, struct), (_SUMMARY, pa.binary())])

        def rows_and_summary(place: int, received: Iterator[CommitBlock | ReadSummary]) -> _Batches:
            reads: list[ReadSummary] = []
            seen = RowsSeen(chosen)
            for _, batch in make(place, _blocks(received, reads)):
                seen.add(batch)
                structs = pa.StructArray.from_arrays(batch.columns, fields=list(struct))
                nothing = pa.nulls(len(batch), pa.binary())
                yield pa.RecordBatch.from_arrays([structs, nothing], schema=schema)
            known = of_values([pickle.dumps(seen.summary(reads))], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.nulls(1, struct), known], schema=schema)

        found = self._views.shuffled_rows(
            self._reading(), self._items(), schema, Step(rows_and_summary, places)
        )
        known = found.column(_SUMMARY).drop_null().to_pylist()
        self.summary = summed([pickle.loads(each) for each in known])
        return found.of_table(TABLE)

    def counted(self) -> None:
        """Run the tasks for the summary alone."""
        make, chosen, places = self._making(), self._question.chosen, self._places

        def count(
            place: int, received: Iterator[CommitBlock | ReadSummary]
        ) -> Iterator[HistorySummary]:
            reads: list[ReadSummary] = []
            seen = RowsSeen(chosen)
            for _, batch in make(place, _blocks(received, reads)):
                seen.add(batch)
            yield seen.summary(reads)

        self.summary = summed(
            [*self._views.shuffled(self._reading(), self._items(), Step(count, places))]
        )

    def _items(self) -> list[Sequence[GroupsPart] | ZookeeperCluster]:
        # One task has ZooKeeper's commits: all of a group.
        return [*self._groups, *([] if self._zookeeper is None else [self._zookeeper])]

    def _reading(self) -> Callable[[Sequence[GroupsPart] | ZookeeperCluster], _Passed]:
        """Return a function that reads commits, and passes blocks of them on."""
        until_ms, places, options = self._question.moments.until_ms, self._places, self._options
        is_chosen, is_group = self._question.chosen.is_topic, self._question.chosen.is_group
        tasks = len(self._groups)

        def read(item: Sequence[GroupsPart] | ZookeeperCluster) -> _Passed:
            blocks = CommitBlocks(until_ms, places, is_chosen)
            if isinstance(item, ZookeeperCluster):
                for batch in item.commits(HISTORY_COLUMNS):
                    yield from blocks.add(batch)
                yield from blocks.last()
                return
            use_file_access(options.file_access)
            generations = []
            reaches: list[LogReach] = []
            with reported_work(READ, {"reads": str(len(item))}):
                for part in item:
                    on_the_way = PartReaches(part, options)
                    for copy in part.read.copies if part.read else ():
                        own = GroupGenerations(is_group)
                        for batch in read_group_records(
                            *(copy, options, all_rows(copy, HISTORY_COLUMNS), own.add),
                            tables=on_the_way.walk_of(copy),
                        ):
                            yield from blocks.add(batch)
                        generations.append(own)
                    reaches += on_the_way.found()
                summary = ReadSummary.of(reaches, generations, tasks, blocks.span)
            yield from blocks.last()
            yield _SUMMARIES, summary

        return read

    def _making(self) -> Callable[[int, Iterable[CommitBlock]], _Rows]:
        """Return a function that makes the rows of a place."""
        question, file_access = self._question, self._options.file_access
        # A task unpickles those of its own place.
        of_places = [pickle.dumps(logs) for logs in self._log_paths()]

        def make(place: int, blocks: Iterable[CommitBlock]) -> _Rows:
            use_file_access(file_access)
            paths: Mapping[tuple[str | None, int | None], str] = pickle.loads(of_places[place])
            for commits in commits_by_log([*blocks]):
                key = commits.topic, commits.partition
                for batch in history_rows(commits, paths.get(key), question):
                    yield key, batch

        return make

    def _log_paths(self) -> list[dict[tuple[str | None, int | None], str]]:
        """Return where the logs are that each place reads."""
        found: list[dict[tuple[str | None, int | None], str]] = [{} for _ in range(self._places)]
        for log in best_logs(self._views.logs):
            place = place_of(log.topic, log.partition, self._places)
            found[place][log.topic, log.partition] = log.path
        return found

    def generations(self) -> Rows:
        """Return the rows of table `group_generations`: those that tasks have returned, or where
        that would be too many, from another reading of `__consumer_offsets`."""
        found = self.summary.generations
        if found is not None:
            return RowsInMemory(found)
        options, is_group = self._options, self._question.chosen.is_group

        def read(parts: Sequence[GroupsPart]) -> Iterator[tuple[int, pa.RecordBatch]]:
            use_file_access(options.file_access)
            for copy in (copy for part in parts if part.read for copy in part.read.copies):
                own = GroupGenerations(is_group)
                rows = all_rows(copy, HISTORY_COLUMNS)
                for _ in read_group_records(copy, options, rows, own.add):
                    pass
                yield copy.size % max(tasks, 1), generation_batch(own.rows())

        def batches(_: int, received: Iterator[pa.RecordBatch]) -> _Batches:
            yield from received

        tasks = len(self._groups)
        schema = arrow_schema(GENERATIONS)
        return self._views.shuffled_rows(read, self._groups, schema, Step(batches, max(tasks, 1)))


class LagHistory:
    """The history: `rows` of table `lag_history` first, by one of its methods; then the rest."""

    def __init__(
        self, views: Views, question: LagHistoryQuestion, zookeeper: ZookeeperCluster | None = None
    ) -> None:
        self._views, self._question, self._zookeeper = views, question, zookeeper
        self.rows = HistoryRows(views, question, zookeeper)

    @cached_property
    def statuses(self) -> list[GroupStatus]:
        """The status of each group at the end, the worst first."""
        ends = self.rows.summary.ends
        return [] if ends is None else group_statuses(python_rows(ends))

    @cached_property
    def reaches(self) -> list[CommitReach]:
        """How far back the commits of each store reach."""
        known = [*self.rows.summary.reaches]
        if self._zookeeper is not None:
            known.append(self._zookeeper.reach())
        return commit_reaches(known, note_missing_records(self._views.logs, CONSUMER_OFFSETS))

    @property
    def has_findings(self) -> bool:
        """Whether a group has an error at the end, or damage hides commits."""
        has_errors = any(each.status == LagStatus.ERR.value for each in self.statuses)
        return has_errors or any(reach.damaged_ranges for reach in self.reaches)

    def words(self) -> list[str]:
        """Return lines: how many groups have each status at the end, how far back commits reach,
        and which of the given names have no rows."""
        totals = Counter(each.status for each in self.statuses)
        shown = [f"{totals[name]:,} {name}" for name in _STATUS_ORDER if name in totals]
        groups = f"{counted(totals.total(), 'group')} at the end: {', '.join(shown) or 'none'}"
        reach = reach_words(self.reaches, self._question.from_ms)
        return [groups, *reach.splitlines(), *self.without_rows]

    @property
    def without_rows(self) -> list[str]:
        """Lines about the given names of groups and topics that have no rows."""
        shares, names = self._named_shares, self.rows.summary.names
        missing = self._question.chosen.words_without(
            names._replace(groups=names.groups | shares),
            lambda: known_names(self._views, self._zookeeper),
        )
        return [*_share_words(sorted(shares)), *missing]

    @cached_property
    def _named_shares(self) -> frozenset[str]:
        """The share groups among those that were named and have no row."""
        named = self._question.chosen.groups - self.rows.summary.names.groups
        if not named:
            return frozenset()
        rows = self.rows.generations().table.select(["group_id", "group_type"]).to_pylist()
        return named & {row["group_id"] for row in rows if row["group_type"] == "share"}


def _share_words(named: Sequence[str]) -> list[str]:
    """Return a line about named groups that commit nothing."""
    if not named:
        return []
    return [
        "a share group commits no offset, and has no history: its state of deliveries is in "
        f"{SHARE_GROUP_STATE}, and kafkalog groups shows where it is now: "
        f"{first_names(named, _MOST_NAMED)}"
    ]


def _blocks(
    received: Iterable[CommitBlock | ReadSummary], reads: list[ReadSummary]
) -> Iterator[CommitBlock]:
    """Yield the blocks that a place has received, and put the summaries aside."""
    for each in received:
        if isinstance(each, CommitBlock):
            yield each
        else:
            reads.append(each)


def _task_count(views: Views) -> int:
    """Return in how many tasks logs are read."""
    sizes = [(log.topic, sum(segment_sizes(log.segments))) for log in views.logs]
    of_commits = sum(size for topic, size in sizes if topic == CONSUMER_OFFSETS)
    of_all = sum(size for _, size in sizes)
    for_cores = min(2 * views.cores, of_commits // _LEAST_BYTES)
    for_logs = (of_all - of_commits) // _LOG_BYTES_PER_TASK
    return 1 + max(of_commits // _BYTES_PER_TASK, for_cores) + for_logs
