"""Generated logs with a flipped bit: lag still adds up, nothing that is lost counts as readable,
and where no damage is reported the answer is that of the sound log."""

import random
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from kafkalog.format.batch_header import read_header
from kafkalog.inspection.lag.lag_columns import LagAccounts, lag_accounts
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.lag.lag_logs import drawn_events, write_log_dir
from tests.support.lag.lag_replay import COUNTED, LagReplay, LagView, replayed

NOW_MS = time.time_ns() // 1_000_000

STEP = 50
USUAL = [range(first, first + STEP) for first in range(0, 300, STEP)]
FURTHER = [range(first, first + STEP) for first in range(300, 2000, STEP)]
PARTS = (*COUNTED, "damaged")
NEXT = ("next_offset", "next_timestamp_ms", "timestamp_type")


def flip_a_bit(log_dir: Path, source: random.Random) -> bool:
    """One that a batch's checksum covers; False if there is no batch."""
    files = [path for path in sorted(log_dir.glob("*/*.log")) if path.stat().st_size]
    if not files:
        return False
    path = source.choice(files)
    data = bytearray(path.read_bytes())
    positions = [0]
    while positions[-1] < len(data):
        positions.append(positions[-1] + read_header(bytes(data), positions[-1]).size)
    position = source.choice(positions[:-1])
    header = read_header(bytes(data), position)
    at = source.randrange(17 if header.magic == 2 else 12, header.size)
    data[position + at] ^= 1 << source.randrange(8)
    path.write_bytes(data)
    return True


def assert_damage_hides_and_changes_nothing(
    accounts: LagAccounts, view: LagView, position: int
) -> None:
    row = {name: int(getattr(accounts, name)[position]) for name in (*PARTS, *NEXT, "lag")}
    sound = view.answer(position)
    assert row["lag"] == sum(row[name] for name in PARTS) - int(accounts.ahead_of_log[position])
    assert min(row[name] for name in PARTS) >= 0
    ends = accounts.high_watermark[position], accounts.last_stable_offset[position]
    assert accounts.high_watermark[position] <= view.high_watermark
    # Damage can hide that a transaction was open, but not itself.
    hides_a_begin = accounts.last_stable_offset[position] > view.last_stable_offset
    assert not hides_a_begin or accounts.damaged[0] > 0
    if ends != (view.high_watermark, view.last_stable_offset):
        return  # the log's last batch was hit, a marker, or the begin of an open transaction
    assert row["readable_records"] <= sound["readable_records"]
    if row["next_offset"] >= 0:
        assert {name: row[name] for name in NEXT} == {name: sound[name] for name in NEXT}
    assert accounts.consumed_timestamp_ms[position] in (-1, sound["consumed_timestamp_ms"])
    if row["damaged"] == 0:
        assert row == {name: sound[name] for name in row}


def assert_all_positions(replay: LagReplay, log: PartitionLog) -> None:
    positions = np.arange(replay.log_end + 3)
    for read_committed in (False, True):
        view = replay.at(None, read_committed=read_committed)
        accounts = lag_accounts(log, positions, read_committed=read_committed, now_ms=NOW_MS)
        for position in positions.tolist():
            assert_damage_hides_and_changes_nothing(accounts, view, position)


@pytest.mark.parametrize(
    "seeds",
    [*USUAL, *(pytest.param(seeds, marks=pytest.mark.deep) for seeds in FURTHER)],
    ids=lambda seeds: f"{seeds[0]} to {seeds[-1]}",
)
def test_damage_is_reported_and_changes_no_other_answer(seeds: range) -> None:
    # F310, F314, F317: all positions are asked, so all damage is met.
    for seed in seeds:
        replay = replayed(drawn_events(seed))
        with tempfile.TemporaryDirectory() as folder:
            log_dir = Path(folder) / "log-dir"
            write_log_dir(log_dir, replay)
            if not flip_a_bit(log_dir, random.Random(seed)):
                continue
            (log,) = find_partitions([str(log_dir)])
            try:
                assert_all_positions(replay, log)
            except AssertionError as error:
                error.add_note(f"the log of seed {seed}")
                raise
