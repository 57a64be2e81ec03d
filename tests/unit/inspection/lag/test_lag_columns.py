"""Lag in logs of a running broker, which deletes segments and topics meanwhile. F94."""

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.lag import lag_columns
from kafkalog.inspection.lag.lag_columns import accounts_of_now, lag_accounts, lag_logs
from tests.support.spark.kafka_logs import write_log

NOW_MS = time.time_ns() // 1_000_000


def batch(offset: int) -> bytes:
    return write_batch([Record(offset, 1000, 0, None, b"value")])


def test_the_lag_of_a_deleted_directory_is_unknown(tmp_path: Path) -> None:
    path = write_log(tmp_path, "orders-0", {0: [batch(0)]})
    log = lag_logs([str(path)])[0]
    shutil.rmtree(path)
    assert lag_logs([str(path)])[0] is None
    assert accounts_of_now(log, np.array([0]), None, read_committed=False, now_ms=NOW_MS) is None


def test_a_log_that_loses_a_segment_meanwhile_is_read_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path, "orders-0", {0: [batch(0)], 1: [batch(1)]})
    oldest = path / f"{0:020d}.log"

    def after_retention(*arguments: Any, **settings: Any) -> Any:
        oldest.unlink(missing_ok=True)
        return lag_accounts(*arguments, **settings)

    monkeypatch.setattr(lag_columns, "lag_accounts", after_retention)
    found = accounts_of_now(
        lag_logs([str(path)])[0], np.array([0]), None, read_committed=False, now_ms=NOW_MS
    )
    assert found is not None
    assert (found.below_log_start.tolist(), found.readable_records.tolist()) == ([1], [1])


def test_segments_that_are_never_there_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path, "orders-0", {0: [batch(0)]})

    def gone(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(str(path))

    monkeypatch.setattr(lag_columns, "lag_accounts", gone)
    with pytest.raises(FileNotFoundError):
        accounts_of_now(
            lag_logs([str(path)])[0], np.array([0]), None, read_committed=False, now_ms=NOW_MS
        )
