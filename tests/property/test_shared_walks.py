"""Views that go along one walk have the rows that each has by itself, whatever the bytes are, and
say the same about damage. So have those whose segments processes divide among them. Rules:
docs/report.md F1330, F1323."""

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import BatchFields, with_checksum
from kafkalog.format.transaction_marker import ABORT, TransactionMarker, write_marker
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views import engine, shared_views
from kafkalog.views.engine import AskedView, LocalViews
from kafkalog.views.planning import shared_reads
from kafkalog.views.reading import shared_walk
from kafkalog.views.reading.shared_walk import SharedRead, WantedView, read_shared
from tests.support.logs.samples import batch, consecutive, joined, segments
from tests.support.repository import EXAMPLES

NAME = "00000000000000000000.log"
MARKER = write_marker(
    TransactionMarker(ABORT, 3, 1_700_000_000_000), 6, BatchFields(producer_id=7, producer_epoch=1)
)
PLACES = ("file", "position", "offset", "length", "kind")


class Kept:
    """A fold that returns what it is given."""

    def add(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        return (batch,)

    def end(self) -> Iterable[pa.RecordBatch]:
        return ()


ASKED = (
    AskedView("byte_ranges", fold=Kept),
    AskedView("batches", fold=Kept),
    AskedView("records", options={"subscribe": None}, fold=Kept),
)


class Lines(logging.Handler):
    """What is logged, without a second line that says the same."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.add(record.getMessage())


def told(
    path: Path, *requests: Sequence[AskedView], processes: int = 1
) -> tuple[list[pa.Table], set[str]]:
    """The rows of requests, one after the other, and the lines about damage."""
    logs = find_partitions([str(path)])
    views = LocalViews([str(path)], logs, processes, {"mode": "PERMISSIVE"})
    handler, logger = Lines(), logging.getLogger("kafkalog.views.reading.segment_damage")
    logger.addHandler(handler)
    try:
        rows = [found.table for request in requests for found in views.rows(*request)]
    finally:
        logger.removeHandler(handler)
    return rows, handler.lines


def one_by_one(
    function: Callable[[object], Iterable[object]], items: Sequence[object], **_: object
) -> Iterator[object]:
    """Does what processes would do, so that a test sees what is logged."""
    for item in items:
        yield from function(item)


def divided(path: Path, least_bytes: int = 1) -> tuple[list[pa.Table], set[str]]:
    """The same, where processes divide all segments of more bytes, that are read together."""
    with (
        mock.patch.object(shared_reads, "LEAST_PART_BYTES", least_bytes),
        mock.patch.object(engine, "in_order", one_by_one),
        # Another test of this process can have used a store.
        mock.patch.object(engine, "has_connections", return_value=False),
    ):
        return told(path, ASKED, processes=2)


def assert_same(path: Path) -> None:
    alone, own_lines = told(path, *([asked] for asked in ASKED))
    for together, lines in (told(path, ASKED), divided(path)):
        for asked, rows, own in zip(ASKED, together, alone, strict=True):
            # Not as Python's values: it has no dates for some times.
            places = [(name, "ascending") for name in PLACES if name in rows.column_names]
            # Which file comes first is the engine's choice.
            assert rows.sort_by(places).equals(own.sort_by(places)), asked.name
        assert lines == own_lines


def assert_same_of(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        partition = Path(directory, "orders-0")
        partition.mkdir()
        Path(partition, NAME).write_bytes(data)
        assert_same(Path(directory))


@given(segments(), st.data())
def test_any_segment_with_a_stretch_that_was_replaced(
    segment: tuple[list[bytes], object], data: st.DataObject
) -> None:
    sound = joined(segment[0])
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, len(sound)))
    assert_same_of(sound)
    assert_same_of(sound[:start] + data.draw(st.binary(max_size=200)) + sound[end:])


@given(segments(), st.data())
def test_records_that_are_damaged_under_a_right_checksum(
    segment: tuple[list[bytes], object], data: st.DataObject
) -> None:
    batches = [*segment[0], MARKER]
    places = [i for i, part in enumerate(batches) if part[16] == 2]
    damaged = bytearray(batches[index := data.draw(st.sampled_from(places))])
    bit = data.draw(st.integers(8 * 21, 8 * len(damaged) - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    batches[index] = with_checksum(bytes(damaged))
    assert_same_of(joined(batches))


def test_a_control_batch_with_a_damaged_record_between_sound_batches() -> None:
    """View `records` has no control records and says nothing of this one; the others do."""
    first, second, third = consecutive(3)
    damaged = bytearray(MARKER)
    damaged[61] ^= 0x40  # the length of its record
    data = joined([first, second, with_checksum(bytes(damaged)), consecutive(1, start=7)[0]])
    assert_same_of(data)
    assert_same_of(joined([first, second, MARKER, third]))


@pytest.mark.parametrize("example", ["damaged", "kafka-4.4", "kafka-0.10"])
def test_log_directories_of_brokers(example: str) -> None:
    assert_same(EXAMPLES / example)


def test_they_do_go_along_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []

    def noted(read: SharedRead, wanted: Sequence[WantedView]) -> object:
        shared.append(len(read.reads))
        return read_shared(read, wanted)

    monkeypatch.setattr(shared_views, "read_shared", noted)
    told(EXAMPLES / "damaged", ASKED)
    logs = find_partitions([str(EXAMPLES / "damaged")])
    assert shared == [3] * sum(len(log.segments) for log in logs)


def noted_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each part that is read of the segments under a path shows what it is."""
    found: list[bool] = []

    def noted(*arguments: object) -> object:
        part = shared_walk.read_part(*arguments)  # type: ignore[arg-type]
        found.append(part is not None)
        return part

    monkeypatch.setattr(shared_views, "read_part", noted)
    divided(path)
    return found


def test_parts_of_sound_segments_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / NAME).write_bytes(joined(consecutive(40)))
    parts = noted_parts(tmp_path, monkeypatch)
    assert len(parts) > 2
    assert all(parts)


def test_a_damaged_segment_is_read_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    batches = consecutive(40)
    batches[20] = batches[20][:-1] + bytes([batches[20][-1] ^ 1])
    (partition / NAME).write_bytes(joined(batches))
    parts = noted_parts(tmp_path, monkeypatch)
    assert 1 <= parts.count(False) < len(parts)
    assert_same(tmp_path)


def test_epochs_that_go_back_over_parts_without_epochs(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    epochs = [5] * 14 + [-1] * 14 + [3] * 14
    batches = [batch(50 + 2 * number, 2, epoch=epoch) for number, epoch in enumerate(epochs)]
    (partition / NAME).write_bytes(joined(batches))
    assert_same(tmp_path)


@pytest.mark.parametrize(("start", "epoch"), [(100, 4), (30, 5), (30, 4)])
def test_parts_that_do_not_follow_each_other(tmp_path: Path, start: int, epoch: int) -> None:
    """Each half of the log is sound, and its offsets or epochs go back in between."""
    first = [batch(50 + 2 * number, 2, epoch=5) for number in range(20)]
    second = [batch(start + 2 * number, 2, epoch=epoch) for number in range(20)]
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / NAME).write_bytes(joined([*first, *second]))
    assert_same(tmp_path)
