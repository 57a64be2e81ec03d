"""`kafkalog dump` carries out its plan: several processes turn files into text, in order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.command_line.dump import side_files as dump_side_files
from kafkalog.command_line.dump.plan import Item, LogItem, SideItem, planned, refuse_outputs
from kafkalog.command_line.dump.request import DumpRequest
from kafkalog.command_line.terminal import is_coloured, print_note, styled
from kafkalog.errors import CorruptDataError
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.dump.dump_lines import BATCH_CSV, DumpedFile
from kafkalog.inspection.dump.dump_log import DumpOptions, LogDump, Piece
from kafkalog.inspection.dump.dump_messages import is_decoded
from kafkalog.inspection.dump.dump_records import RECORD_CSV, RECORD_CSV_WITHOUT_PAYLOADS
from kafkalog.inspection.dump.text_lines import LineFormat
from kafkalog.storage.files.output_files import given_file, is_written_directly
from kafkalog.storage.files.unreadable_input import note_deleted
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.read_directories import refuse_inputs
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.views.parallel import Text, processes_for, written_in_order
from kafkalog.views.progress import progress_bar
from kafkalog.words import counted, printable

if TYPE_CHECKING:
    from kafkalog.inspection.dump.record_search import RecordFilter, VisibilityJudge


@dataclass
class Progress:
    """How many rows and findings have been written."""

    rows: int = 0
    findings: int = 0


def run_dump(request: DumpRequest, *, fail_on_findings: bool) -> ExitCode:
    """Dump the requested files. Raises what reading files raises."""
    items = planned(request)
    progress = Progress()
    paths = [item.path for item in items]
    with opened_output(request, paths) as output, _bar(items, request) as bar:
        output.write(csv_header(request))
        for findings in _written(items, request, output, bar.update):
            tell_beside(findings, request)
            progress.findings += len(findings)
    return ended(progress, fail_on_findings=fail_on_findings)


def ended(progress: Progress, *, fail_on_findings: bool) -> ExitCode:
    """Return the exit code; write a line about damage if there was any."""
    if progress.findings:
        print_note(f"{counted(progress.findings, 'damaged range')} skipped")
    return ExitCode.FINDINGS if fail_on_findings and progress.findings else ExitCode.DONE


@contextmanager
def opened_output(
    request: DumpRequest, files: Iterable[str], *, grows: bool = False
) -> Iterator[BinaryIO]:
    """Open the output of the dump of these files; one that `grows` is in its place from the start.

    Raises OptionError for an input file, a file in an input directory, or a file that cannot be
    written.
    """
    if request.output is None:
        refuse_inputs("stdout", "/dev/stdout", files)
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    refuse_outputs(request, files)
    if os.path.isfile(request.output) and not is_written_directly(request.output):
        print_note(f"{request.output}: replacing the existing file")
    with given_file("--output", request.output, at_once=grows) as file:
        yield file


def _bar(items: list[Item], request: DumpRequest) -> AbstractContextManager[Any]:
    # A bar would be in the middle of the output.
    is_shown = request.output is not None or not sys.stdout.isatty()
    return progress_bar(sum(item.size for item in items), hidden=not is_shown)


def _written(
    items: list[Item], request: DumpRequest, output: BinaryIO, on_bytes: Callable[[int], None]
) -> Iterator[tuple[str, ...]]:
    """Write the text, and yield its findings."""
    if request.limit is not None:
        for piece in _limited(items, request, request.limit):
            output.write(for_people(piece, request))
            yield piece.findings
        return
    findings = written_in_order(
        partial(_texts, request=request),
        items,
        output,
        processes=processes_for(sum(item.size for item in items), request.processes),
        on_done=lambda item: on_bytes(item.size),
    )
    with closing(findings):
        yield from findings


def _texts(item: Item, request: DumpRequest) -> Iterator[tuple[Text, tuple[str, ...]]]:
    for piece in item_pieces(item, request):
        yield for_people(piece, request), piece.findings


def _limited(items: list[Item], request: DumpRequest, limit: int) -> Iterator[Piece]:
    """Yield pieces one after the other, to know how many rows are left."""
    left = limit
    for item in items:
        for piece in item_pieces(item, replace(request, limit=left)):
            left -= piece.rows
            yield piece
        if not left:
            return


def item_pieces(item: Item, request: DumpRequest) -> Iterator[Piece]:
    """Yield the text of a file, or of a part of one."""
    is_text = request.output_format == "text"
    if isinstance(item, LogItem):
        if is_text and item.resume_position < 0:
            yield heading(item)
        options = SegmentOptions.of_read(item.read, timestamps=request.timestamps)
        with opened_segment(item.read) as file:
            window = FileWindow(file)
            dump = log_dump(item, request, window, options, resume_position=item.resume_position)
            yield from dump.pieces()
        return
    if is_text:
        yield Piece(_encoded(f"Dumping {printable(item.path)}\n"))
    yield from _side_file_pieces(item, is_text=is_text)


def _side_file_pieces(item: SideItem, *, is_text: bool) -> Iterator[Piece]:
    try:
        for text in dump_side_files.texts(item.path, as_json=not is_text):
            yield Piece(text)
    except FileNotFoundError:
        note_deleted(item.path)
    except CorruptDataError as error:
        line = printable(f"Found invalid bytes in {error}")
        yield Piece(_encoded(f"{line}\n") if is_text else b"", findings=(line,))


def heading(item: LogItem) -> Piece:
    """Return the heading of a log file's text."""
    below = f"{item.heading}\n" if item.heading else ""
    return Piece(_encoded(f"Dumping {printable(item.read.path)}\n{below}"))


def log_dump(
    item: LogItem,
    request: DumpRequest,
    window: FileWindow,
    segment: SegmentOptions,
    *,
    resume_position: int,
    is_growing: bool = False,
) -> LogDump:
    """Return the dump of a file."""
    read = item.read
    return LogDump(
        window,
        segment,
        DumpedFile(read.path, read.topic, read.partition),
        replace(dump_options(request), judge=None if is_growing else _judge(request, item)),
        decoded_topic=read.topic if is_decoded(read.topic or "") else None,
        resume_position=resume_position,
        is_growing=is_growing,
    )


def _judge(request: DumpRequest, item: LogItem) -> VisibilityJudge | None:
    """Return what finds out whether consumers see the records with a key, for JSON; None for files
    that are not part of a live log on a disk."""
    if request.key is None or request.output_format != "json":
        return None
    from kafkalog.inspection.dump.record_search import VisibilityJudge

    directory = os.path.dirname(item.path)
    logs = find_partitions([directory], strict=False)
    found = next((log for log in logs if log.path == directory and log.is_live), None)
    return None if found is None else VisibilityJudge(found)


def dump_options(request: DumpRequest) -> DumpOptions:
    """Return what to show of batches and records."""
    some = DumpOptions() if request.limit is None else DumpOptions(most_rows=request.limit)
    return replace(
        some,
        text_format=LineFormat(request.output_format),
        is_deep=request.is_deep,
        payloads=request.payloads,
        decodes=not request.raw,
        show_secrets=request.show_secrets,
        keep=record_filter(request),
    )


def record_filter(request: DumpRequest) -> RecordFilter | None:
    """Return the filter of the records that are read, None to keep all."""
    if request.key is None:
        return None if request.timestamps is None else lambda records: records
    from kafkalog.inspection.dump.record_search import wanted_records

    return wanted_records(request.key, None)


def csv_header(request: DumpRequest) -> bytes:
    """Return the first line of CSV, nothing in other formats."""
    if request.output_format != "csv":
        return b""
    names = RECORD_CSV if request.payloads else RECORD_CSV_WITHOUT_PAYLOADS
    return _encoded(",".join(names if request.is_deep else BATCH_CSV) + "\n")


def for_people(piece: Piece, request: DumpRequest) -> Text:
    """Return the text, with findings in red on a terminal."""
    if not piece.findings or request.output is not None or not is_coloured(sys.stdout):
        return piece.text
    text = bytes(piece.text)
    for finding in piece.findings:
        text = text.replace(_encoded(finding), _encoded(styled(finding, fg="red")), 1)
    return text


def tell_beside(findings: tuple[str, ...], request: DumpRequest) -> None:
    """Write findings to stderr if the format has no place for them."""
    if request.output_format == "csv":
        for finding in findings:
            print_note(finding)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
