"""Batches that processes pass on in shared memory."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kafkalog.views import parallel
from kafkalog.views.parallel import in_order
from kafkalog.views.shared_batches import is_shared
from kafkalog.views.worker_pool import WorkerEndedError

LARGE, SMALL = 100_000, 10


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have opened some in this process, which then would do all the work itself."""
    monkeypatch.setattr(parallel, "has_connections", lambda: False)


def batch(rows: int, first: int = 0) -> pa.RecordBatch:
    numbers = pa.array(np.arange(first, first + rows))
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["orders"]))
    return pa.RecordBatch.from_pydict({"number": numbers, "topic": texts})


def test_large_batches_arrive_as_they_were_sent() -> None:
    assert [is_shared(batch(rows)) for rows in (LARGE, SMALL)] == [True, False]

    def read(item: int) -> Iterator[pa.RecordBatch]:
        yield batch(LARGE, item)
        yield batch(SMALL, item)

    found = list(in_order(read, range(6), processes=2))
    assert found == [batch(rows, item) for item in range(6) for rows in (LARGE, SMALL)]


def test_a_batch_holds_no_descriptor() -> None:
    with os.fdopen(os.memfd_create("kafkalog"), "rb"):
        before = shared_descriptors()
        found = list(in_order(lambda item: [batch(LARGE)] * 50, range(4), processes=2))
        assert (len(found), shared_descriptors() - before) == (200, set())
    assert before


def shared_descriptors() -> set[str]:
    """Return the descriptors of shared memory that this process has. Others can be closed at any
    time: garbage of earlier tests has files."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if os.readlink(each).startswith("/memfd:kafkalog"):
                found.add(each.name)
    return found


def test_who_stops_early_and_who_is_killed() -> None:
    rows = in_order(lambda item: iter([batch(LARGE)] * 100), range(2), processes=2)
    assert next(rows) == batch(LARGE)
    rows.close()

    def killed(item: int) -> Iterator[pa.RecordBatch]:
        yield batch(LARGE)
        os.kill(os.getpid(), 9)

    with pytest.raises(WorkerEndedError):
        list(in_order(killed, range(2), processes=2))
