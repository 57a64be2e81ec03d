"""`kafkalog export` plans, lets processes write the files, and commits them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kafkalog.command_line.export.progress import ExportProgress, SuppressedCounts
from kafkalog.command_line.inputs import bytes_in
from kafkalog.command_line.terminal import print_note, print_text, progress_bar, write_table
from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.lake.decoding.decoding_requests import (
    TableDecodingOptions,
    decoding_requests,
    suppression_of,
)
from kafkalog.lake.decoding.local_decoding import LocalDecoding
from kafkalog.lake.export_plan import ExportPlan, no_columns, plan_export, starting_offsets
from kafkalog.lake.export_report import TopicRow, topic_rows, verdict
from kafkalog.lake.formats.dead_letters import dead_letters_line, other_tables, refuse_dead_letters
from kafkalog.lake.formats.targets import TablePlace, table_target
from kafkalog.lake.layout import RECORDS
from kafkalog.lake.table_options import TableRequest
from kafkalog.lake.target import Target
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.files.output_files import given_file, refuse_log_directory, refuse_unwritable
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.read_directories import directories_read, refuse_tables
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import Mode
from kafkalog.views.parallel import all_results, processes_for
from kafkalog.views.planning.ingest_positions import IngestRun
from kafkalog.words import counted


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """The options of the command, beside those of the request and of the tables."""

    paths: tuple[str, ...]
    place: TablePlace
    mode: str
    processes: int | None
    show: int
    decoding: TableDecodingOptions


def run_export(
    settings: ExportSettings, request: IngestRequest, tables: TableRequest, *, now_ms: int
) -> bool:
    """Write what is new to the tables; return whether there are findings.

    Raises what reading and writing raise: then the tables are as before, or
    PartlyCommittedError names those that are not.
    """
    settings.place.refuse_delta_of_spark()
    target_of = table_target(settings.place, tables.layout())
    inputs, size = _inputs(settings)
    processes = processes_for(size, settings.processes)
    options = request.options(inputs, settings.mode, settings.place.output_dir, now_ms=now_ms)
    # The processes are forks of this one, which so knows what they did not find: it is a gap.
    options = replace(options, fails_on_deleted=False)
    suppress = request.suppress
    requests = decoding_requests(
        settings.decoding, options.paths, settings.mode, has_suppression=suppress is not None
    )
    suppression = suppression_of(suppress, settings.decoding, options.paths)
    name = settings.decoding.dead_letters
    refuse_dead_letters(name, settings.place, is_decoding=bool(requests))

    def written(
        target_of: Callable[[str], Target], decoding: LocalDecoding | None, *, per_topic: bool
    ) -> tuple[ExportPlan, tuple[IngestRun, ...]]:
        with stopped_by_exceptions():
            plan = plan_export(
                options,
                request,
                target_of,
                table_per_topic=per_topic,
                target_file_bytes=tables.target_file_size,
                processes=processes,
                decoded_columns=no_columns if decoding is None else decoding.columns,
            )
            plan = plan.without(suppression)
            return plan, plan.commit(_written(plan, processes, decoding))

    decoding = LocalDecoding(requests, settings.decoding, processes) if requests else None
    plan, runs = written(other_tables(target_of, name), decoding, per_topic=tables.table_per_topic)
    _write_starting_offsets(request, runs)
    _report(plan, runs, settings)
    if name is not None:
        faulty = LocalDecoding(requests, settings.decoding, processes, is_for_faults=True)
        _, dead = written(lambda _: target_of(name), faulty, per_topic=False)
        print_text(dead_letters_line(dead, settings.place.location(name)))
    return any(run.findings for run in runs)


def _inputs(settings: ExportSettings) -> tuple[list[str], int]:
    """Return the paths to read, globs resolved, and the bytes of the logs under them."""
    logs = find_logs(settings.paths, strict=settings.mode == Mode.FAILFAST.value)
    entries = [entry for path in settings.paths for entry in input_entries(path)]
    files = [entry.path for entry in entries if not entry.is_directory]
    output_dir = settings.place.output_dir
    if output_dir is not None:
        refuse_tables(output_dir, [*directories_read(entries, logs), *files])
    if output_dir is not None and not is_remote(output_dir):
        refuse_unwritable("--output-dir", output_dir)
        refuse_log_directory(os.path.join(output_dir, RECORDS))
    size = bytes_in(logs)
    segments = counted(sum(len(log.segments) for log in logs), "segment")
    print_note(f"found {segments} of {counted(len(logs), 'partition')}, {counted(size, 'byte')}")
    return [entry.path for entry in entries], size


def _written(plan: ExportPlan, processes: int, decoding: LocalDecoding | None) -> list[WrittenFile]:
    """Return the files that the tasks have written; after an error there are none."""

    def write(task: int) -> list[WrittenFile]:
        # A process that is ended removes the files that it has not completed.
        with stopped_by_exceptions():
            reads, on_rows = plan.groups[task], partial(progress.add, task)
            if decoding is None:
                files = plan.task.written_files(reads, on_rows, suppressed.add)
            else:
                rows = decoding.rows(plan.task.rows(reads, suppressed.add))
                files = plan.task.written_rows(rows, on_rows)
        progress.done(task)
        return files

    def discard(written: Sequence[Sequence[WrittenFile]]) -> None:
        plan.discard([file for files in written for file in files])

    if any(is_remote(output.path) for output in plan.task.outputs.values()):
        # A catalog can be connected with the store, and its connections must not be shared.
        processes = 1
    size = sum(read.size for group in plan.groups for read in group)
    with progress_bar(size, "exporting", hidden=not plan.groups) as bar:
        progress = ExportProgress(plan.groups, bar)
        suppressed = SuppressedCounts(plan.task.outputs)
        written = all_results(
            write,
            range(len(plan.groups)),
            processes=processes,
            on_wait=progress.show,
            on_failure=discard,
        )
        progress.show()
    for line in suppressed.lines():
        print_note(line)
    return [file for files in written for file in files]


def _write_starting_offsets(request: IngestRequest, runs: Sequence[IngestRun]) -> None:
    if request.starting_offsets_out is None:
        return
    with given_file("--starting-offsets-out", request.starting_offsets_out) as file:
        file.write(starting_offsets(runs).encode())


def _report(plan: ExportPlan, runs: Sequence[IngestRun], settings: ExportSettings) -> None:
    rows, show = topic_rows(runs), settings.show
    if rows and show:
        write_table(TopicRow._fields, rows[:show], "text")
        if len(rows) > show:
            print_text(f"and {counted(len(rows) - show, 'topic')} more: --show {len(rows)}")
    for line in verdict(runs):
        print_text(line)
    written = [each.name for each in plan.tables if each.output is not None]
    if written:
        print_text(f"tables: {' '.join(map(settings.place.location, written))}")
