"""An export by processes of this machine, for the command and for Python without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.lake.decoding.decoding_requests import DecodingRequest, TableDecodingOptions
from kafkalog.lake.decoding.local_decoding import LocalDecoding
from kafkalog.lake.export_plan import ExportPlan, no_columns, plan_export
from kafkalog.lake.formats.dead_letters import other_tables
from kafkalog.lake.formats.export_progress import ExportProgress, SuppressedCounts
from kafkalog.lake.formats.targets import TablePlace, table_target
from kafkalog.lake.table_options import TableRequest
from kafkalog.lake.target import Target
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.uris import is_remote
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.parallel import all_results
from kafkalog.views.planning.ingest_positions import IngestRun
from kafkalog.views.planning.table_positions import StateSource
from kafkalog.views.progress import progress_bar


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
