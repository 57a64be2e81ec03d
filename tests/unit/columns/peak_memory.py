"""Read one segment whole, every column of it; tell how much memory that took at its peak.

    python -m tests.unit.columns.peak_memory FILE

Prints JSON: the rows read, and the bytes above what the interpreter held with kernels loaded. A
process of its own, since a peak is one of the whole process.
"""

import json
import re
import sys
from pathlib import Path

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.inspection.compile_kernels import compile_kernels
from kafkalog.schemas import table_fields
from kafkalog.storage.files.files import InputFile

STATUS = Path("/proc/self/status")


def memory(name: str) -> int:
    """VmRSS, what the process holds now, or VmHWM, the most that it held; in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    assert found
    return 1024 * int(found[1])


def main(path: str) -> None:
    """Read, and print what it took."""
    compile_kernels()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of compiling
    before = memory("VmRSS")
    columns = [field["name"] for field in table_fields("records")]
    constants: dict[str, str | int | None] = {"topic": "topic", "partition": 0, "file": path}
    rows = 0
    with InputFile(path) as file:
        batches = SegmentRecords(
            FileWindow(file), SegmentOptions(0), columns, constants, lambda fault: None
        ).rows()
        for batch in batches:
            rows += batch.num_rows
    json.dump({"rows": rows, "bytes": memory("VmHWM") - before}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
