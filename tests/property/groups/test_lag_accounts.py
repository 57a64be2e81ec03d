"""Generated logs: lag, and what it is made of, is what a plain replay of the events counts."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.inspection.lag.lag_columns import LagAccounts, lag_accounts
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.lag.lag_logs import drawn_events, drawn_moments, write_log_dir
from tests.support.lag.lag_replay import COUNTED, LagReplay, LagView, replayed

NOW_MS = time.time_ns() // 1_000_000

STEP = 100
USUAL = [range(first, first + STEP) for first in range(0, 200, STEP)]
FURTHER = [range(first, first + STEP) for first in range(200, 6000, STEP)]
COLUMNS = (
    "log_start_offset",
    "high_watermark",
    "high_watermark_from",
    "last_stable_offset",
    "lag",
    *COUNTED,
    "in_tiered_storage",
    "damaged",
    "ahead_of_log",
    "next_offset",
    "next_timestamp_ms",
    "timestamp_type",
    "newest_timestamp_ms",
    "consumed_timestamp_ms",
    "is_before_log",
)


def assert_files_are_as_replayed(replay: LagReplay, log: PartitionLog) -> None:
    """By the plain reader: the writer wrote what the events say."""
    reader = LogReader(log)
    found = {
        record.offset: (record.timestamp_ms, record.timestamp_type)
        for chunk in reader.chunks(reader.start_offset, 2**20)
        for record in chunk.records()
    }
    view = replay.at(None, read_committed=True)
    assert found == {
        offset: (batch.time_of(offset), batch.timestamp_type)
        for offset, batch in view.records.items()
    }
    assert (reader.start_offset, reader.end_offset()) == (replay.log_start, replay.log_end)
    assert stable_offset(log).offset == view.last_stable_offset


def assert_lag_is_as_replayed(seed: int, replay: LagReplay, log: PartitionLog) -> None:
    """Every column for all positions from 0 to two behind the log's end, now and at several
    moments, by when nothing or some offset had been committed, at both isolation levels."""
    positions = np.arange(replay.log_end + 3)
    moments = drawn_moments(seed, replay)
    reached = np.random.default_rng(seed).integers(0, len(positions), len(moments)).tolist()
    asked = np.tile(positions, len(moments))
    at_ms, by_then = (np.repeat(each, len(positions)) for each in (moments, reached))
    for read_committed in (False, True):
        now = replay.at(None, read_committed=read_committed)
        found = lag_accounts(log, positions, read_committed=read_committed, now_ms=NOW_MS)
        assert_same([now], found)
        views = [replay.at(moment, read_committed=read_committed) for moment in moments]
        found = lag_accounts(log, asked, at_ms, read_committed=read_committed, now_ms=NOW_MS)
        assert_same(views, found)
        views = [
            replay.at(moment, read_committed=read_committed, reached=offset)
            for moment, offset in zip(moments, reached, strict=True)
        ]
        found = lag_accounts(
            log, asked, at_ms, by_then, read_committed=read_committed, now_ms=NOW_MS
        )
        assert_same(views, found)


def assert_same(views: Sequence[LagView], found: LagAccounts) -> None:
    """All columns, of every view for every position."""
    count = len(found.lag) // len(views)
    rows = [view.answer(position) for view in views for position in range(count)]
    columns = {name: getattr(found, name).tolist() for name in COLUMNS}
    assert columns == {name: [row[name] for row in rows] for name in COLUMNS}
    for row in rows:
        assert row["lag"] == sum(row[name] for name in COUNTED) - row["ahead_of_log"]


@pytest.mark.parametrize(
    "seeds",
    [*USUAL, *(pytest.param(seeds, marks=pytest.mark.deep) for seeds in FURTHER)],
    ids=lambda seeds: f"{seeds[0]} to {seeds[-1]}",
)
def test_lag_and_what_it_is_made_of_are_what_a_replay_counts(seeds: range) -> None:
    # F95 to F97, F214, F310 to F313, F315
    for seed in seeds:
        replay = replayed(drawn_events(seed))
        with tempfile.TemporaryDirectory() as folder:
            log_dir = Path(folder) / "log-dir"
            write_log_dir(log_dir, replay)
            (log,) = find_partitions([str(log_dir)])
            try:
                assert_files_are_as_replayed(replay, log)
                assert_lag_is_as_replayed(seed, replay, log)
            except AssertionError as error:
                error.add_note(f"the log of seed {seed}")
                raise
