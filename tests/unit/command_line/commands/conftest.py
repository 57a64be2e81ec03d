"""The partition that tests of `kafkalog dump` print."""

from pathlib import Path

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from tests.support.logs.dumped_records import RECORDS


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A partition of two batches."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    batches = write_batch(RECORDS[:2]) + write_batch(RECORDS[2:], BatchFields(base_sequence=5))
    (directory / f"{0:020d}.log").write_bytes(batches)
    return directory
