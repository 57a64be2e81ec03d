"""Nodes with a file system that is mounted read-only, and with a torn partition of
`__transaction_state`: what `kafkalog recover` says is what a broker of 4.4.0 does. Rules:
docs/format.md F118, F966 and F1000."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from tests.support.broker.node_starts.started_node import Outcome, started_node
from tests.support.broker.node_starts.typed_lines import partitions, recovered
from tests.support.golden.startup_cases import startup_cases
from tests.support.repository import Unpack

pytestmark = pytest.mark.deep
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
TRANSACTIONS = "__transaction_state-0"
_LOG = f"d1/{TRANSACTIONS}/{0:020d}.log"
# The control's partition ends at offset 10.
_END = 10
_NOW_MS = 1_795_632_060_000


@pytest.fixture
def folder(unpacked: Unpack, tmp_path: Path) -> Path:
    """The directories of a node that was stopped cleanly."""
    return startup_cases(unpacked)["00-control"].made_in(tmp_path / "node")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


@pytest.fixture
def read_only(folder: Path) -> Iterator[Callable[[str], None]]:
    """What makes a log directory a file system that is mounted read-only."""
    mounted = []

    def make(name: str) -> None:
        path = str(folder / name)
        mount("--bind", path, path)
        mounted.append(path)
        mount("-o", "remount,ro,bind", path)

    yield make
    for path in mounted:
        subprocess.run(["umount", path], check=True)


@needs_root
@pytest.mark.parametrize(("name", "starts"), [("d1", False), ("d2", True)])
def test_a_log_directory_is_mounted_read_only(
    name: str, starts: bool, folder: Path, read_only: Callable[[str], None]
) -> None:
    # F966: the process goes on without d2, but not without the metadata in d1.
    read_only(name)
    text = recovered(folder)
    first = f"Node 1 starts with Kafka 4.4.0, WITHOUT {folder}/d2\n"
    assert text.startswith(first if starts else "Node 1 does NOT start with Kafka 4.4.0, ")
    found = started_node(folder)
    assert found.started == starts, found.log[-3000:]
    if starts:
        assert found.offline == {"d2"}
        rows = partitions(folder)
        leaderless = {f"{it['topic']}-{it['partition']}" for it in rows if not it["has_leader"]}
        assert leaderless - {"__cluster_metadata-0"} == found.leaderless
    (line,) = {each.strip() for each in text.splitlines() if "mount -o remount" in each}
    subprocess.run(["bash", "-c", line], check=True)
    assert recovered(folder).startswith("Node 1 starts with Kafka 4.4.0\n")
    found = started_node(folder)
    assert (found.started, found.offline) == (True, set()), found.log[-3000:]


def cut(folder: Path) -> None:
    log = folder / _LOG
    log.write_bytes(log.read_bytes()[:-5])


def cut_after_a_kill(folder: Path) -> None:
    cut(folder)
    (folder / "d1/.kafka_cleanshutdown").unlink()


def torn_value(folder: Path) -> None:
    # The key of a transactional id, and the first bytes of its state.
    record = Record(_END, _NOW_MS, 0, b"\x00\x00\x00\x01t", b"\x00\x00\x00\x00\x00\x07")
    with (folder / _LOG).open("ab") as log:
        log.write(write_batch([record], BatchFields(leader_epoch=0)))


def loaded_end(found: Outcome) -> int:
    """Return where the log ended when it was loaded: the coordinator then ends transactions, and
    writes that down."""
    assert found.started, found.log[-3000:]
    loaded = re.findall(
        rf"partition={TRANSACTIONS}, dir=\S+\] Loading producer state till offset (\d+)", found.log
    )
    return int(loaded[-1])


@pytest.mark.parametrize("damage", [cut, cut_after_a_kill, torn_value])
def test_a_torn_partition_of_transaction_states(
    damage: Callable[[Path], None], folder: Path
) -> None:
    damage(folder)
    (row,) = (it for it in partitions(folder) if it["topic"] == "__transaction_state")
    found = started_node(folder)
    assert found.started == row["broker_starts"]
    assert loaded_end(found) == row["log_end_offset"]
    refused = "Error loading transactions from transaction log" in found.log
    assert refused == (row["coordinator_error"] is not None)
    assert refused == (damage is torn_value)
