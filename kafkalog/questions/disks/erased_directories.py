"""What is left without a person's records: new directories, each file compared with its input.

Rules: docs/erasure.md F1113 to F1116, F1264.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from kafkalog.errors import KafkaLogError
from kafkalog.inspection.erasure.erased_files import (
    INDEXES,
    WrittenFile,
    copied_file,
    erased_file,
    erased_indexes,
    index_path,
    refuse_changed,
    refuse_unwritable_objects,
)
from kafkalog.inspection.erasure.file_search import FileSearch, Wanted, search_source
from kafkalog.inspection.erasure.file_spans import FileSpans, first_difference
from kafkalog.inspection.erasure.input_files import InputEntry, Part
from kafkalog.questions.disks.erasure import Erasure, OnDone
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.output_files import flush_directory, flushed_meanwhile, make_directories
from kafkalog.storage.log_dir.running_broker import refuse_running
from kafkalog.views.parallel import in_order, processes_for


def refuse_running_brokers(entries: Iterable[InputEntry]) -> None:
    """Raise LogDirError if a broker runs on a directory of these files."""
    for directory in sorted({os.path.dirname(entry.path) for entry in entries}):
        refuse_running(directory)
        refuse_running(os.path.dirname(directory))


def write_erased(
    erasure: Erasure,
    scratch: str,
    *,
    hashes: bool,
    processes: int | None,
    on_done: OnDone = lambda _: None,
) -> list[WrittenFile]:
    """Write every file of the inputs below `scratch`, without the records that were found: each
    input's files in `scratch` itself, or in a folder of their own where there are several inputs.

    Raises LogDirError for files that somebody writes to, UnsupportedFormatError for records in a
    file that cannot be written again, KafkaLogError if something is found in what was written.
    """
    refuse_unwritable_objects(erasure.searches)
    by_path = {each.entry.path: each for each in erasure.searches if each.hits.erased.any()}
    rewritten = {index_path(path, kind) for path in by_path for kind in INDEXES}
    entries = [entry for entry in erasure.entries if entry.path not in rewritten]
    folders = _folders(entries)
    targets = {entry.path: os.path.join(scratch, folders[entry.input_path], entry.place)
               for entry in entries}  # fmt: skip
    for directory in sorted({os.path.dirname(path) for path in targets.values()}):
        make_directories(directory, os.fsync)
    write = partial(_written, by_path=by_path, targets=targets, erasure=erasure, hashes=hashes)
    found = in_order(
        write,
        entries,
        processes=processes_for(sum(entry.size for entry in entries), processes),
        on_done=lambda entry: on_done(entry.size),
    )
    written = [*found]
    for directory in sorted({os.path.dirname(path) for path in targets.values()}):
        flush_directory(directory, os.fsync)
    _refuse_grown(erasure.entries)
    return written


def _written(
    entry: InputEntry,
    *,
    by_path: Mapping[str, FileSearch],
    targets: Mapping[str, str],
    erasure: Erasure,
    hashes: bool,
) -> Iterator[WrittenFile]:
    search, path = by_path.get(entry.path), targets[entry.path]
    if search is None:
        yield copied_file(entry, path, hashes=hashes)
        return
    written = erased_file(search, path, hashes=hashes)
    indexes = {each.path: each for each in erasure.beside if each.part is Part.INDEX}
    with flushed_meanwhile(path):
        _refuse_remains(search, written, erasure.request.wanted)
        files = [written, *erased_indexes(written, indexes, hashes=hashes)]
    yield from files


def _refuse_remains(search: FileSearch, written: WrittenFile, wanted: Wanted) -> None:
    """Read what was written: what was copied must be the same bytes, and a search of the batches
    that were written again must find all records but those that are erased. Rule: F1264."""
    entry, rewritten = search.entry, written.rewritten
    with InputFile(entry.path) as old, InputFile(written.path) as new:
        place = first_difference(old, new, written.copied())
        before, after = (
            search_source(entry, FileSpans(file, spans), wanted)
            for file, spans in (
                (old, [(each.old_start, each.old_end) for each in rewritten]),
                (new, [(each.new_start, each.new_end) for each in rewritten]),
            )
        )
    erased = int(search.hits.erased.sum())
    is_right = (
        place is None
        and not after.hits.erased.any()
        and len(before.hits) == len(after.hits) + erased
        and before.records == after.records + erased
        and (before.end_offset == after.end_offset or search.end_offset != before.end_offset)
        and not after.unsearched
    )
    if is_right:
        return
    detail = (
        f"{after.records} records and {len(after.hits)} that are found in the batches that were "
        f"written again; {before.records - erased} and {len(before.hits) - erased} must be there"
    )
    if place is not None:
        detail = f"what was copied differs from {entry.path} at position {place} or later"
    raise KafkaLogError(f"{written.path}: {detail}; nothing is written")


def _refuse_grown(entries: Iterable[InputEntry]) -> None:
    """Raise LogDirError for a file that has another size than when it was listed."""
    for entry in entries:
        if entry.part is Part.LOG:
            with InputFile(entry.path, as_stored=True) as file:
                refuse_changed(entry, file)


def _folders(entries: Iterable[InputEntry]) -> dict[str, str]:
    """Return for each input the folder of the new directory that its files go to."""
    inputs = [*dict.fromkeys(entry.input_path for entry in entries)]
    if len(inputs) == 1:
        return {inputs[0]: ""}
    folders: dict[str, str] = {}
    for path in inputs:
        name = folder = os.path.basename(path.rstrip("/")) or "root"
        number = 1
        while folder in folders.values():
            number += 1
            folder = f"{name}-{number}"
        folders[path] = folder
    return folders
