"""What is the latest committed value of each key?

Rules: docs/format.md F270 to F275; reasons: docs/decisions/0007 and 0031.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.lake.file_rows import file_rows
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.partition_rows import partition_rows
from kafkalog.lake.state.state_plan import plan_state
from kafkalog.lake.state.state_rows import STATE
from kafkalog.lake.state.state_task import StateFiles, StateTask
from kafkalog.lake.written_file import OnReport, WrittenFile, no_report
from kafkalog.questions.state_files import written_state
from kafkalog.storage.log_dir.deleted_logs import has_deleted_segments
from kafkalog.views.engine import Rows, RowsInMemory, Views
from kafkalog.views.options.state_options import StateRequest
from kafkalog.views.planning.state_positions import StateRun, StateSettings, full_run
from kafkalog.views.planning.table_positions import StateSource
from kafkalog.words import counted, first_names

# The most partitions that are named.
_MOST_NAMED = 5


class StateTotals(NamedTuple):
    """How many rows of a state are keys with a value, and deletes."""

    keys: int
    deletes: int


class State:
    """The state of partitions from their beginnings: rows of table `state`, which tasks have still
    to make, and of `state_partitions`. `totals` and `keyless` count rows and records without a key
    once tasks have made the rows."""

    def __init__(
        self, views: Views, request: StateRequest, mode: str, sources: Sequence[StateSource]
    ) -> None:
        settings = StateSettings(request.isolation_level, request.keep_tombstones)
        self.run: StateRun = full_run(None, settings, sources)
        self._views, self._mode, self._sources = views, mode, sources
        self.keyless = 0
        self.totals = StateTotals(0, 0)

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Run the tasks, which write the rows to files and report these; return the files."""
        paths = self._views.log_dirs
        plan = plan_state(paths, self._mode, self.run, self._sources, processes=self._views.cores)
        secret = secrets.token_bytes(SECRET_BYTES)
        keeps = self.run.positions.keep_tombstones
        task = StateTask(plan.options, output, keeps, secret)
        done: StateFiles = written_state(self._views, task, plan, report)
        self.keyless = done.keyless
        self.totals = written_totals(output.path, done.files, has_deletes=keeps)
        return done.files

    def rows(self) -> Rows:
        """Return the rows, which tasks make now."""
        with TemporaryDirectory(prefix="kafkalog-state-") as directory:
            files = self.written(TableOutput(directory, ingest_run=0), no_report)
            return RowsInMemory(_read(directory, files))

    @property
    def partitions(self) -> Rows:
        """Rows of table `state_partitions`."""
        return RowsInMemory(pa.Table.from_batches([partition_rows(self._sources)]))

    def words(self) -> list[str]:
        """Return lines: how many keys there are, what was left out, and what is doubtful."""
        return state_words(self.totals, self.run, self.keyless, self._sources)


def state_words(
    totals: StateTotals, run: StateRun, keyless: int, sources: Sequence[StateSource]
) -> list[str]:
    """Return lines: whether the state is known, how many keys there are, what was new and left out,
    and what is doubtful. Rule: docs/format.md F1353."""
    doubtful = sum(not source.is_exact for source in sources)
    lead = ""
    if doubtful:
        is_open = doubtful == len(sources) and not totals.keys
        told = "the state is not known" if is_open else "the state is not exact"
        lead = (
            f"{told}: values may be missing in {doubtful} of {counted(len(sources), 'partition')}; "
        )
    read = f"read {counted(run.offsets_to_read, 'offset')}"
    if keyless:
        read += f", left out {counted(keyless, 'record')} without a key"
    deleted = f" and {counted(totals.deletes, 'delete')}" if totals.deletes else ""
    keys = f"{counted(totals.keys, 'key')}{deleted} in the table"
    line = f"{lead}{keys}; {read if run.has_work else 'nothing is new'}"
    return [line, *_notes(sources), *state_doubts(sources)]


def _notes(sources: Sequence[StateSource]) -> Iterator[str]:
    """Yield which copies are read in the place of the best ones, which partitions end before the
    requested time, and which logs do not begin at offset 0. F1294, F1425"""
    later = [
        f"{source.name} from offset {source.log_start_offset}"
        for source in sources
        if source.log_start_offset and not source.is_past
    ]
    if later:
        yield (
            f"not the whole history is here: {first_names(later, _MOST_NAMED)}; keys without a "
            "record from there on are not in the state"
        )
    by_directory: dict[str, list[str]] = defaultdict(list)
    for source in sources:
        if source.log is not None and source.best_path is not None:
            by_directory[source.log.log_dir.path].append(source.name)
    for path, names in by_directory.items():
        yield (
            f"read from the copies in {path}, which were cleaned less than the best replicas: "
            f"{first_names(names, _MOST_NAMED)}"
        )
    ended = [source.name for source in sources if source.ends_before_time]
    if ended:
        yield (
            f"no record is as late as that time in {first_names(ended, _MOST_NAMED)}: the state is "
            "that of their ends here; a copy that is older than the time lacks what came after it"
        )


def state_doubts(sources: Sequence[StateSource]) -> list[str]:
    """Return which partitions lack values, and which records have a time in the future."""
    doubtful = [source for source in sources if not source.is_exact]
    doubts = [source.doubt for source in doubtful]
    waiting = [
        source.name
        for source in doubtful
        if source.log is not None and has_deleted_segments(source.log.path)
    ]
    if waiting:
        doubts.append(
            f"{first_names(waiting, _MOST_NAMED)}: segments that the broker has deleted, but not "
            "yet removed, are in the directory, and can have values of then: kafkalog undelete "
            "copies them, and kafkalog state reads the copy"
        )
    return doubts + [
        f"FUTURE TIME: {source.name}: {wrong}; the state includes it"
        for source in sources
        if (wrong := source.wrong_times)
    ]


def written_totals(path: str, files: Sequence[WrittenFile], *, has_deletes: bool) -> StateTotals:
    """Return what files at a path come to. Raises OSError as reading does."""
    rows = sum(file.rows for file in files)
    deletes = 0
    if has_deletes:
        batches = _batches(path, files)
        deletes = sum(batch.column("is_deleted").true_count for batch in batches)
    return StateTotals(rows - deletes, deletes)


def _read(path: str, files: Sequence[WrittenFile]) -> pa.Table:
    schema = arrow_schema(STATE)
    batches = (batch.select(schema.names).cast(schema) for batch in _batches(path, files))
    return pa.Table.from_batches(batches, schema)


def _batches(path: str, files: Sequence[WrittenFile]) -> Iterator[pa.RecordBatch]:
    directory = OutputDirectory(path)
    for file in files:
        yield from file_rows(directory, file)
