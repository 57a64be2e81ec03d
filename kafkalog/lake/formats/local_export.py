"""An export by processes of this machine, for the command and for Python without Spark, and how far
it has come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Array
from multiprocessing.sharedctypes import RawArray
from typing import Any

from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.lake.decoding.decoding_requests import DecodingRequest, TableDecodingOptions
from kafkalog.lake.decoding.local_decoding import LocalDecoding
from kafkalog.lake.export_plan import ExportPlan, no_columns, plan_export
from kafkalog.lake.export_task import suppressed_lines
from kafkalog.lake.formats.dead_letters import other_tables
from kafkalog.lake.formats.targets import TablePlace, table_target
from kafkalog.lake.table_options import TableRequest
from kafkalog.lake.target import Target
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.parallel import all_results
from kafkalog.views.planning.ingest_positions import IngestRun
from kafkalog.views.planning.table_positions import StateSource
from kafkalog.views.progress import progress_bar
from kafkalog.words import size_text

_SHOWN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """What an export reads and leaves out, and where and how it writes tables; `decoding` as it was
    given."""

    options: ReadOptions
    request: IngestRequest
    tables: TableRequest
    place: TablePlace
    decoding: TableDecodingOptions
    suppression: Suppression | None = None


def _written_files(
    plan: ExportPlan, processes: int, decoding: LocalDecoding | None, say: Callable[[str], object]
) -> list[WrittenFile]:
    """Return the files that the tasks have written, and show how far they are; after an error there
    are none. What is left out as that of erased persons is said at the end."""
    size = sum(read.size for group in plan.groups for read in group)
    suppressed = SuppressedCounts(plan.task.outputs)
    with progress_bar(size, "exporting", hidden=not plan.groups) as bar:
        progress = ExportProgress(plan.groups, bar)

        def write(task: int) -> list[WrittenFile]:
            # A process that is ended removes the files that it has not completed.
            with stopped_by_exceptions():
                reads, count = plan.groups[task], partial(progress.add, task)
                if decoding is None:
                    files = plan.task.written_files(reads, count, suppressed.add)
                else:
                    rows = decoding.rows(plan.task.rows(reads, suppressed.add))
                    files = plan.task.written_rows(rows, count)
            progress.done(task)
            return files

        def discard(written: Sequence[Sequence[WrittenFile]]) -> None:
            plan.discard([file for files in written for file in files])

        if any(is_remote(output.path) for output in plan.task.outputs.values()):
            # A catalog can be connected with the store, and its connections must not be shared.
            processes = 1
        written = all_results(
            write,
            range(len(plan.groups)),
            processes=processes,
            on_wait=progress.show,
            on_failure=discard,
        )
        progress.show()
    plan.kept.update(suppressed.kept())
    for line in suppressed.lines():
        say(line)
    return [file for files in written for file in files]


def local_exports(
    settings: ExportSettings,
    requests: Sequence[DecodingRequest],
    processes: int,
    say: Callable[[str], object],
    found: Sequence[StateSource] | None = None,
) -> Iterator[tuple[ExportPlan, tuple[IngestRun, ...]]]:
    """Write what is new to the tables of records, and yield what was planned and the run of each
    table; then the same of the dead letters, if they are wanted.

    `say` is called with what is left out of a topic; `found` is what `found_sources` gives where it
    has been called just now. Raises what planning, reading, writing and committing raise: then the
    tables are as before, or PartlyCommittedError names those that are not.
    """
    layout, name = settings.tables.layout(), settings.decoding.dead_letters
    target_of = table_target(settings.place, layout)
    # The processes are forks of this one, which so knows what they did not find: it is a gap.
    options = replace(settings.options, fails_on_deleted=False)

    def written(
        target_of: Callable[[str], Target], decoding: LocalDecoding | None, *, per_topic: bool
    ) -> tuple[ExportPlan, tuple[IngestRun, ...]]:
        with stopped_by_exceptions():
            plan = plan_export(
                options,
                settings.request,
                target_of,
                table_per_topic=per_topic,
                target_file_bytes=layout.target_file_bytes,
                processes=processes,
                found=found,
                decoded_columns=no_columns if decoding is None else decoding.columns,
            ).without(settings.suppression)
            return plan, plan.ended(plan.commit(_written_files(plan, processes, decoding, say)))

    def decoded(*, is_for_faults: bool) -> LocalDecoding | None:
        if not requests:
            return None
        return LocalDecoding(requests, settings.decoding, processes, is_for_faults=is_for_faults)

    per_topic = settings.tables.table_per_topic
    records = decoded(is_for_faults=False)
    yield written(other_tables(target_of, name), records, per_topic=per_topic)
    if name is not None:
        yield written(lambda _: target_of(name), decoded(is_for_faults=True), per_topic=False)


class ExportProgress:
    """Moves a bar by the bytes of the segments that are done; tasks count in shared memory, where
    forks of this process write too."""

    def __init__(self, groups: Sequence[Sequence[SegmentRead]], bar: Any) -> None:
        self._bar = bar
        self._bytes = [sum(read.size for read in group) for group in groups]
        self._offsets = [max(sum(map(_offsets, group)), 1) for group in groups]
        self._rows = RawArray("q", max(len(groups), 1))
        self._is_done = RawArray("b", max(len(groups), 1))
        self._process = os.getpid()
        self._began = self._shown_at = time.monotonic()
        self._shown_bytes = 0

    def add(self, task: int, rows: int) -> None:
        """Count rows that a task has written."""
        self._rows[task] += rows
        if os.getpid() == self._process and time.monotonic() - self._shown_at > _SHOWN_SECONDS:
            self.show()

    def done(self, task: int) -> None:
        """Remember that a task has written everything."""
        self._is_done[task] = 1

    def show(self) -> None:
        """Move the bar to where the tasks are now."""
        self._shown_at = time.monotonic()
        done = sum(self._bytes_done(task) for task in range(len(self._bytes)))
        rate = done / max(self._shown_at - self._began, 0.001)
        text = f"{sum(self._rows):,} records, {size_text(done)}, {size_text(int(rate))}/s"
        self._bar.update(done - self._shown_bytes, text)
        self._shown_bytes = done

    def _bytes_done(self, task: int) -> int:
        if self._is_done[task]:
            return self._bytes[task]
        # A compacted segment has fewer records than offsets.
        share = min(self._rows[task] / self._offsets[task], 1)
        return int(self._bytes[task] * share)


class SuppressedCounts:
    """Counts the records of each topic that were left out, and the values that nothing decodes, in
    shared memory likewise."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = sorted(topics)
        self._counts = Array("q", max(2 * len(self._topics), 1))

    def add(self, topic: str, records: int, undecoded: int) -> None:
        """Count records and values of a topic."""
        place = 2 * self._topics.index(topic)
        with self._counts.get_lock():
            self._counts[place] += records
            self._counts[place + 1] += undecoded

    def kept(self) -> dict[str, int]:
        """Return how many values of each topic nothing decodes."""
        return {topic: self._counts[2 * number + 1] for number, topic in enumerate(self._topics)}

    def lines(self) -> Iterator[str]:
        """Yield lines for each topic with such records or values."""
        for number, topic in enumerate(self._topics):
            yield from suppressed_lines(topic, *self._counts[2 * number : 2 * number + 2])


def _offsets(read: SegmentRead) -> int:
    first = max(read.first_offset, read.base_offset or 0)
    end = read.end_offset
    if read.next_base_offset is not None:
        end = min(end, read.next_base_offset)
    return max(end - first, 0)
