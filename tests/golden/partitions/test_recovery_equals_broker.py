"""What is planned for damaged copies of a log equals what a 4.4.0 broker did to them.

golden/recovery.json has for each copy what the broker said and left: whether it started, the
offsets it served, and its files with their sizes.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.indexes import read_transaction_index
from kafkalog.format.side_files.leader_epochs import EpochStart, with_epoch, write_leader_epochs
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, read_producer_snapshot
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.recovery import RecoveryPlan, RecoverySettings, plan_recovery
from kafkalog.storage.recovery.segment_recovery import recover_segment
from tests.support.golden.fixture_sets import UNCLEAN_VARIANTS
from tests.support.repository import Unpack

# The topics were made with index.interval.bytes=1024.
INDEX_INTERVAL_BYTES = 1024
NOW_MS = 1_790_000_000_000
# kafka-dump-log, run on the copies before they were put away, made an empty index where there was
# none, and cut the garbage to whole entries.
MADE_BY_DUMP_LOG = {"index-missing": "00000000000000000000.index"}
CUT_BY_DUMP_LOG = {("index-garbage", "00000000000000000000.index")}


@pytest.fixture(scope="module")
def said(unpacked: Unpack) -> dict[str, dict[str, Any]]:
    variants = json.loads((unpacked("unclean.golden") / "recovery.json").read_text())
    return {name: told for name, told in variants.items() if "topic" in told}


def offset_of(log_dir: Path, checkpoint: str, topic: str) -> int:
    path = log_dir / f"{checkpoint}-offset-checkpoint"
    return read_offset_checkpoint(path.read_text()).get((topic, 0), 0)


def planned(log_dir: Path, topic: str) -> RecoveryPlan:
    settings = RecoverySettings(
        is_clean_shutdown=False,
        recovery_point=offset_of(log_dir, "recovery-point", topic),
        log_start_offset=offset_of(log_dir, "log-start", topic),
        now_ms=NOW_MS,
        index_interval_bytes=INDEX_INTERVAL_BYTES,
    )
    return plan_recovery(str(log_dir / f"{topic}-0"), settings)


def test_all_damaged_copies_are_compared(said: dict[str, dict[str, Any]]) -> None:
    assert set(said) == set(UNCLEAN_VARIANTS)


@pytest.mark.parametrize("variant", UNCLEAN_VARIANTS)
def test_the_plan_is_what_a_broker_did(
    variant: str, said: dict[str, dict[str, Any]], unpacked: Unpack, tmp_path: Path
) -> None:
    # F113 to F124; T3, T4, T23.
    told = said[variant]
    topic = told["topic"]
    log_dir = unpacked("unclean.logs") / "variants" / variant / "log-dirs"
    if variant in MADE_BY_DUMP_LOG:
        log_dir = Path(shutil.copytree(log_dir, tmp_path / "log-dirs"))
        os.remove(log_dir / f"{topic}-0" / MADE_BY_DUMP_LOG[variant])
    plan = planned(log_dir, topic)
    assert (plan.start_error is None) == told["broker_started"]
    if not told["broker_started"]:
        return
    served = told["consume"]
    assert (plan.log_start_offset, plan.log_end_offset) == (served["earliest"], served["latest"])
    left = told["files_after_recovery_running"]
    assert plan.files.keys() == left.keys()
    # Which epochs there are is compared below; the checkpoint's size follows from them.
    sizes = {
        name: size
        for name, size in plan.files.items()
        if size is not None
        and name != "leader-epoch-checkpoint"
        and (variant, name) not in CUT_BY_DUMP_LOG
    }
    assert sizes == {name: left[name] for name in sizes}
    # Once started the broker became leader where the log ends, by its log in epoch 0 or 1.
    epochs = [
        with_epoch(plan.leader_epochs, EpochStart(epoch, served["latest"])) for epoch in (0, 1)
    ]
    assert left["leader-epoch-checkpoint"] in [len(write_leader_epochs(each)) for each in epochs]


def producer_logs(logs: Path) -> list[Path]:
    """Partitions whose log is whole, never cleaned, with the snapshots of a broker."""
    found = []
    for path in sorted(logs.rglob("*-[0-9]")):
        cleaned = read_offset_checkpoint((path.parent / "cleaner-offset-checkpoint").read_text())
        topic, _, partition = path.name.rpartition("-")
        is_whole = (path / f"{0:020d}.log").exists() and (topic, int(partition)) not in cleaned
        if is_whole and list(path.glob("*.snapshot")):
            found.append(path)
    return found


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_producers_are_what_the_brokers_snapshots_say(name: str, unpacked: Unpack) -> None:
    # F106, F110 to F112. A snapshot is named by the offset up to which it speaks.
    compared = 0
    for partition in producer_logs(unpacked(f"{name}.logs")):
        state = ProducerState()
        for log in sorted(partition.glob("*.log")):
            snapshot = log.with_suffix(".snapshot")
            if snapshot.exists() and log.stat().st_size:
                entries = read_producer_snapshot(snapshot.read_bytes())
                if known_wholly(entries, state):
                    assert sorted(entries) == sorted(state.producers.values()), log
                    compared += len(entries)
            with InputFile(str(log)) as file:
                found = recover_segment(file, int(log.stem), state, [])
            assert found.stop is None
            index = log.with_suffix(".txnindex")
            kept = read_transaction_index(index.read_bytes()) if index.exists() else []
            assert found.aborted == kept
    assert compared > 0


def known_wholly(entries: list[ProducerEntry], state: ProducerState) -> bool:
    # Idle producers are not in a snapshot any more.
    return {entry.producer_id for entry in entries} == state.producers.keys()
