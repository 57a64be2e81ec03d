"""The example that tutorials and notebooks read is what its script writes, and sound."""

from pathlib import Path

from kafkalog.format.faults import Fault
from kafkalog.format.records import Record
from tests.docs.shop_week import write_shop_week
from tests.support.logs.plain_reader import read_ranges, read_segment_records
from tests.support.repository import ROOT

EXAMPLE = ROOT / "examples" / "shop-week"


def records(log_dir: Path) -> dict[str, list[Record]]:
    """The records of every segment; compressed bytes may differ between versions of a library."""
    found = {}
    for path in sorted(log_dir.rglob("*.log")):
        data = path.read_bytes()
        ranges = read_ranges(data, int(path.stem))
        assert {piece.fault for piece in ranges} == {Fault.NONE}
        found[path.relative_to(log_dir).as_posix()] = read_segment_records(data, ranges)
    return found


def texts(log_dir: Path) -> dict[str, str]:
    """What is beside the partitions: checkpoints, and whose directory it is."""
    return {path.name: path.read_text() for path in log_dir.iterdir() if path.is_file()}


def test_the_example_is_what_its_script_writes(tmp_path: Path) -> None:
    write_shop_week(str(tmp_path / "logs"))
    assert records(tmp_path / "logs") == records(EXAMPLE)
    assert texts(tmp_path / "logs") == texts(EXAMPLE)
