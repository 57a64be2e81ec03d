"""A read for part of a log reads that part, and says so. Rules: docs/options.md F500, F505."""

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.views.options.options import read_options
from kafkalog.views.reading.work_log import PLANNED, READ
from kafkalog.wire.compression import CompressionType

RECORDS, BATCH, SEGMENT = 64_000, 16, 16_000


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """64,000 records of 1 KiB in four segments; that at offset n has the timestamp n."""
    place = tmp_path_factory.mktemp("large")
    partition = place / "orders-0"
    partition.mkdir()
    randomness = random.Random(0)
    for base in range(0, RECORDS, SEGMENT):
        batches = [
            write_batch(
                [
                    Record(first + n, first + n, 0, None, randomness.randbytes(1000))
                    for n in range(BATCH)
                ],
                BatchFields(compression=CompressionType.LZ4),
            )
            for first in range(base, base + SEGMENT, BATCH)
        ]
        for name, content in write_segment(batches, base).by_name.items():
            (partition / name).write_bytes(content)
    return place


class _Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, int]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        context: dict[str, str] = vars(record)["context"]
        numbers = {name: int(number) for name, number in context.items()}
        self.lines.append((record.getMessage(), numbers))


@contextmanager
def heard() -> Iterator[_Told]:
    logger, told = logging.getLogger("kafkalog.views.reading.work_log"), _Told()
    logger.addHandler(told)
    try:
        yield told
    finally:
        logger.removeHandler(told)


def work(place: Path, **given: Any) -> tuple[int, dict[str, int], dict[str, int]]:
    """How many rows a read has, and what its planning and its tasks say in sum."""
    options = {"path": str(place), **{name: str(value) for name, value in given.items()}}
    reader = KafkaLogReader(read_options(options), ("offset", "value"))
    with heard() as told:
        groups = reader.partitions()
        assert all(isinstance(group, ReadGroup) for group in groups)
        rows = sum(batch.num_rows for group in groups for batch in reader.read(group))
    (planned,) = (numbers for line, numbers in told.lines if line == PLANNED)
    tasks = [numbers for line, numbers in told.lines if line == READ]
    assert len(tasks) == planned["tasks"]
    return rows, planned, {name: sum(task[name] for task in tasks) for name in tasks[0]}


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": '{"orders":{"0":40000}}', "endingOffsets": '{"orders":{"0":40640}}'},
        {"startingTimestamp": 40_000, "endingTimestamp": 40_640},
        {"fromTimestamp": 63_360},
    ],
)
def test_one_in_a_hundred_records_costs_less_than_three_bytes_in_a_hundred(
    given: dict[str, Any], log_dir: Path
) -> None:
    rows, planned, read = work(log_dir, **given)
    assert rows == RECORDS // 100
    everything = planned["bytes_listed"]
    assert everything > RECORDS * 1000
    assert planned["bytes_read"] + read["bytes_read"] < 0.03 * everything
    assert read["batches_decompressed"] <= RECORDS // 100 // BATCH + 1


def test_a_full_read_reads_every_byte_once(log_dir: Path) -> None:
    rows, planned, read = work(log_dir)
    assert rows == RECORDS
    assert read["bytes_read"] == planned["bytes_listed"] == planned["bytes_planned"]
    assert read["batches"] == read["batches_read"] == RECORDS // BATCH
    assert read["bytes_decompressed"] > RECORDS * 1000


def test_columns_that_headers_have_decompress_nothing(log_dir: Path) -> None:
    options = read_options({"path": str(log_dir)})
    reader = KafkaLogReader(options, ("offset",))
    with heard() as told:
        for group in reader.partitions():
            for _ in reader.read(group):
                pass
    assert sum(numbers.get("batches_decompressed", 0) for _, numbers in told.lines) == 0


def test_topics_that_are_not_asked_for_are_listed_and_not_read(log_dir: Path) -> None:
    _, planned, read = work(log_dir, assign='{"orders":[0]}')
    assert planned["partitions_listed"] == 1
    assert read["files"] == planned["segments_listed"] == 4
