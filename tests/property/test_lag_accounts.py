"""Generated logs: lag, and what it is made of, is what a plain replay of the events counts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.columns.transaction_walk import stable_offset
from kafkalog.storage.log_dir import PartitionLog, find_partitions
from kafkalog.storage.log_reader import LogReader
from tests.lag_logs import drawn_events, write_log_dir
from tests.lag_replay import LagReplay, replayed

LOGS = [range(first, first + 100) for first in range(0, 1000, 100)]


def block_name(seeds: range) -> str:
    return f"{seeds[0]} to {seeds[-1]}"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def written(seed: int, folder: Path) -> tuple[LagReplay, PartitionLog]:
    """The log of a seed, replayed and as found in its directory."""
    replay = replayed(drawn_events(seed))
    log_dir = Path(tempfile.mkdtemp(dir=folder)) / "log-dir"
    write_log_dir(log_dir, replay)
    (log,) = find_partitions([str(log_dir)])
    return replay, log


@pytest.mark.parametrize("seeds", LOGS, ids=block_name)
def test_the_files_hold_what_the_events_say(seeds: range, folder: Path) -> None:
    # F15, F42, F46, F95, F96: by the plain reader.
    for seed in seeds:
        replay, log = written(seed, folder)
        reader = LogReader(log)
        found = {
            record.offset: (record.timestamp_ms, record.timestamp_type)
            for chunk in reader.chunks(reader.start_offset, 2**20)
            for record in chunk.records()
        }
        records = replay.at(None, read_committed=False).records
        expected = {
            offset: (batch.time_of(offset), batch.timestamp_type)
            for offset, batch in records.items()
        }
        assert (reader.start_offset, reader.end_offset()) == (replay.log_start, replay.log_end)
        assert found == expected, seed


@pytest.mark.parametrize("seeds", LOGS, ids=block_name)
def test_the_last_stable_offset_is_that_of_the_events(seeds: range, folder: Path) -> None:
    # F214
    for seed in seeds:
        replay, log = written(seed, folder)
        view = replay.at(None, read_committed=True)
        assert stable_offset(log).offset == view.last_stable_offset, seed
