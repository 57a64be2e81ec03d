"""A segment is read in memory that does not grow with it."""

import json
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.columns.jit.compiled import COMPILED
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType
from tests.support.repository import ROOT
from tests.unit.columns.peak_memory import STATUS

MIB = 1024 * 1024
RECORDS = 1000

pytestmark = [
    pytest.mark.skipif(not COMPILED, reason="hundreds of MB take minutes uncompiled"),
    pytest.mark.skipif(not STATUS.exists(), reason="peaks are read from Linux's /proc"),
]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file that does not stay: pytest keeps the folders of three runs."""
    path = tmp_path / f"{0:020d}.log"
    yield path
    path.unlink()


def write_large_segment(path: Path, size: int, codec: CompressionType) -> int:
    """One batch of a thousand 1 KiB records again and again; how many records there are.

    The base offset, which no checksum covers, rises.
    """
    randomness = random.Random(5)
    records = [
        Record(offset, 1_700_000_000_000, 0, b"key", randomness.randbytes(512) * 2, (("n", b"v"),))
        for offset in range(RECORDS)
    ]
    batch = write_batch(records, BatchFields(compression=codec))
    count = size // len(batch) + 1
    with path.open("wb") as file:
        for index in range(count):
            file.write(struct.pack(">q", index * RECORDS) + batch[8:])
    return count * RECORDS


def peak_of_reading(path: Path, expected_rows: int) -> int:
    command = [sys.executable, "-m", "tests.unit.columns.peak_memory", str(path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    answer = json.loads(result.stdout)
    assert answer["rows"] == expected_rows
    return int(answer["bytes"])


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_reading_200_mib_takes_much_less_memory(codec: CompressionType, path: Path) -> None:
    rows = write_large_segment(path, 200 * MIB, codec)
    assert peak_of_reading(path, rows) < 100 * MIB


@pytest.mark.deep
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_reading_1_gib_takes_less_than_300_mib(codec: CompressionType, path: Path) -> None:
    rows = write_large_segment(path, 1024 * MIB, codec)
    assert peak_of_reading(path, rows) < 300 * MIB
