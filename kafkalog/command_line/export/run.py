"""`kafkalog export` plans, lets processes write the files, and commits them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.command_line.terminal import print_note, print_text, write_table
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.lake.decoding.decoding_requests import (
    TableDecodingOptions,
    decoding_requests,
    suppression_of,
)
from kafkalog.lake.export_plan import ExportPlan, starting_offsets
from kafkalog.lake.export_report import TopicRow, topic_rows, verdict
from kafkalog.lake.formats.dead_letters import dead_letters_line, refuse_dead_letters
from kafkalog.lake.formats.local_export import ExportSettings, local_exports
from kafkalog.lake.formats.targets import TablePlace
from kafkalog.lake.layout import RECORDS
from kafkalog.lake.table_options import TableRequest
from kafkalog.storage.files.output_files import given_file, refuse_log_directory, refuse_unwritable
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.read_directories import directories_read, refuse_tables
from kafkalog.storage.log_dir.table_formats import query_line
from kafkalog.storage.partition_log import bytes_in, found_words
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import Mode
from kafkalog.views.options.topics import TopicChoice
from kafkalog.views.parallel import processes_for
from kafkalog.views.planning.ingest_positions import IngestRun
from kafkalog.words import counted


@dataclass(frozen=True, slots=True)
class ExportCommand:
    """The options of the command, beside those of the request and of the tables."""

    paths: tuple[str, ...]
    place: TablePlace
    mode: str
    processes: int | None
    show: int
    decoding: TableDecodingOptions


def run_export(
    settings: ExportCommand, request: IngestRequest, tables: TableRequest, *, now_ms: int
) -> bool:
    """Write what is new to the tables; return whether there are findings. Raises what
    `local_exports` raises."""
    settings.place.refuse_delta_of_spark()
    inputs, size = _inputs(settings, request.choice)
    processes = processes_for(size, settings.processes)
    options = request.options(inputs, settings.mode, settings.place.output_dir, now_ms=now_ms)
    suppress = request.suppress
    requests = decoding_requests(
        settings.decoding, options.paths, settings.mode, has_suppression=suppress is not None
    )
    suppression = suppression_of(suppress, settings.decoding, options.paths)
    name = settings.decoding.dead_letters
    refuse_dead_letters(name, settings.place, is_decoding=bool(requests))
    export = ExportSettings(
        options, request, tables, settings.place, settings.decoding, suppression
    )
    exports = local_exports(export, requests, processes, print_note)
    plan, runs = next(exports)
    _write_starting_offsets(request, runs)
    _report(plan, runs, settings)
    for _, dead in exports:
        print_text(dead_letters_line(dead, settings.place.location(name or "")))
    return any(run.has_findings for run in runs)


def _inputs(settings: ExportCommand, topics: TopicChoice) -> tuple[list[str], int]:
    """Return the paths to read, globs resolved, and the bytes of the logs of the topics."""
    logs = find_logs(settings.paths, strict=settings.mode == Mode.FAILFAST.value)
    entries = [entry for path in settings.paths for entry in input_entries(path)]
    files = [entry.path for entry in entries if not entry.is_directory]
    output_dir = settings.place.output_dir
    if output_dir is not None:
        refuse_tables(output_dir, [*directories_read(entries, logs), *files])
    if output_dir is not None and not is_remote(output_dir):
        refuse_unwritable("--output-dir", output_dir)
        refuse_log_directory(os.path.join(output_dir, RECORDS))
    chosen = topics.chosen(logs)
    print_note(found_words(chosen))
    return [entry.path for entry in entries], bytes_in(chosen)


def _write_starting_offsets(request: IngestRequest, runs: Sequence[IngestRun]) -> None:
    if request.starting_offsets_out is None:
        return
    with given_file("--starting-offsets-out", request.starting_offsets_out) as file:
        file.write(starting_offsets(runs).encode())


def _report(plan: ExportPlan, runs: Sequence[IngestRun], settings: ExportCommand) -> None:
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
        place = settings.place
        # A catalog has a client of its own.
        table = None if place.output_dir is None else place.location(written[0])
        query = None if table is None else query_line(table, place.table_format)
        if query is not None:
            print_text(f"query: {query}")
