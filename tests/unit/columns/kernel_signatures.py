"""Read all files below some folders in every way; tell how often each kernel was compiled.

    python -m tests.unit.columns.kernel_signatures FOLDER...

Prints JSON: the number of signatures of every kernel before reading and after it. A process of its
own, since tests call kernels in ways that the reader does not.
"""

import importlib
import json
import pkgutil
import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

import kafkalog.columns
import kafkalog.inspection
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.segment_reader import (
    SegmentBatchRows,
    SegmentByteRanges,
    SegmentRecords,
)
from kafkalog.inspection.compile_kernels import compile_kernels
from kafkalog.inspection.groups.offset_commits import COMMIT_RECORD_COLUMNS, CommitRows
from kafkalog.inspection.logs.time_lookup import offset_for_time
from kafkalog.schemas import table_fields
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import LogDir, PartitionLog, SegmentFile
from tests.support.golden.fixture_sets import Segment, unique_segments
from tests.support.logs.both_readers import memory_window

RECORDS, BATCHES, COMMITS = (
    tuple(field["name"] for field in table_fields(view))
    for view in ("records", "batches", "offset_commits")
)
CONSTANTS: dict[str, str | int | None] = {
    "topic": "topic",
    "partition": 0,
    "file": "file",
    "brokerId": 0,
}


def signatures() -> dict[str, int]:
    """How many signatures each kernel has been compiled for, or loaded."""
    modules = [
        importlib.import_module(module.name)
        for package in (kafkalog.columns, kafkalog.inspection)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {
        kernel.py_func.__name__: len(kernel.signatures)
        for module in modules
        for kernel in vars(module).values()
        if isinstance(kernel, Dispatcher)
    }


def read_in_every_way(segment: Segment) -> None:
    """All views of one segment, from memory and from the file, whole and in part."""
    base, following = segment.base_offset, segment.next_base_offset
    whole = SegmentOptions(base, following)
    part = SegmentOptions(base, following, first_offset=base + 3, end_offset=base + 20)
    loose = SegmentOptions(None, None, check_crcs=False, max_batch_bytes=2000)
    window = memory_window(segment.path.read_bytes())
    for options, columns in ((whole, RECORDS), (part, RECORDS), (loose, ("offset",)), (part, ())):
        list(SegmentRecords(window, options, columns, CONSTANTS, lambda fault: None).rows())
    batches = SegmentRecords(
        window,
        whole,
        COMMIT_RECORD_COLUMNS,
        CONSTANTS,
        lambda fault: None,
        with_control_records=True,
    ).rows()
    list(CommitRows(None, {}, COMMITS).batches(batches))
    for options, columns in ((part, BATCHES), (loose, ("position",))):
        list(SegmentBatchRows(window, options, columns, CONSTANTS).rows())
    with InputFile(str(segment.path)) as file:
        list(SegmentByteRanges(FileWindow(file), whole, is_compacted=False).rows())
    file_found = SegmentFile(str(segment.path), base, following, 0, "")
    log = PartitionLog("topic", 0, "", LogDir(""), (file_found,))
    offset_for_time(log, base, 1_700_000_000_000)


def main(folders: list[str]) -> None:
    """Read, and print what was compiled."""
    compile_kernels()
    before = signatures()
    for folder in folders:
        for segment in unique_segments(Path(folder)):
            read_in_every_way(segment)
    json.dump({"before": before, "after": signatures()}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
