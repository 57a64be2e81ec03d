"""A real broker on what `kafkalog restore` makes of copied disks, and what goes wrong without some
of its rules: F1039, F1044, F1045, F1047, F1050 and F1053 of docs/restore.md."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)

from kafkalog.format.batch_header import PRODUCER_ID_POSITION, read_header
from kafkalog.format.record_batch import with_checksum
from kafkalog.questions.restore.metadata import RestoredMetadata
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.broker.cluster.committed_offsets import committed
from tests.support.broker.cluster.restored_cluster import (
    MARGIN_MS,
    PARTITIONS,
    WAIT_SECONDS,
    check_transactions,
    consumed,
    ends,
    ledger,
    places,
    produced,
    restore,
)
from tests.support.broker.cluster.restored_node import RestoredNode
from tests.support.golden.restored_copies import AS_OF_MS

Unpacked = Callable[[str], Path]


@pytest.fixture(scope="module")
def disks(unpacked: Unpacked) -> list[str]:
    return sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))


def test_a_broker_serves_what_was_there_at_the_moment(
    disks: list[str], unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1042 to F1055: records, transactions, groups and new producers."""
    manifest = restore(disks, tmp_path / "restored")
    rows = {(row["topic"], row["partition"]): row for row in manifest["partitions"]}
    golden = unpacked("restore44.golden")
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        all_records = consumed(node, "read_uncommitted")
        for topic in ("events", "derived", "transfers"):
            for row in ledger(golden, topic):
                place = topic, row["partition"], row["offset"]
                if row["ack"] * 1000 < AS_OF_MS - MARGIN_MS:
                    assert all_records[place].decode() == row["value"]
                if row["call"] * 1000 > AS_OF_MS + MARGIN_MS:
                    assert place not in all_records
        check_transactions(node, golden, manifest)
        high = ends(node, OffsetSpec.latest())
        stable = ends(node, OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)
        assert high == stable
        groups = {row["group_id"] for row in manifest["commits"]}
        offsets = {group: committed(node, group) for group in groups}
        for row in manifest["commits"]:
            own = row["topic"], row["partition"]
            if row["topic"] in PARTITIONS:
                assert offsets[row["group_id"]][own] == row["committed_offset"]
        begins = ends(node, OffsetSpec.earliest())
        for number in range(10):
            for own, offset in produced(node, f"new {number}").items():
                assert offset >= rows[own]["old_end_offset"]
        written = consumed(node, "read_committed")
        for number in range(10):
            values = [value for value in written.values() if value == f"new {number}".encode()]
            assert len(values) == len(places())
        transactional = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "tx-a"})
        transactional.init_transactions(WAIT_SECONDS)
        transactional.begin_transaction()
        transactional.produce("transfers", "in a transaction", partition=0)
        transactional.commit_transaction(WAIT_SECONDS)
        assert ends(node, OffsetSpec.earliest()) == begins
        assert not list(node.data.glob("*-stray"))
        assert node.warnings == []
        assert "due to log retention" not in node.said


@pytest.mark.deep
def test_without_a_raised_epoch_new_batches_have_an_epoch_that_old_ones_had(
    disks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1039: clients that knew the old cluster, and followers, take the later epoch for the
    truth."""
    records = RestoredMetadata._partitions

    def lowered(metadata: RestoredMetadata) -> Iterator[Any]:
        for record in records(metadata):
            yield record._replace(value={**record.value, "leaderEpoch": 0})

    def last_epochs(node: RestoredNode) -> tuple[int, int]:
        (log,) = [log for log in find_partitions([str(node.data)]) if log.name == "events-2"]
        found = [
            read_header(batch, 0).leader_epoch
            for chunk in LogReader(log).chunks(0, 2**20)
            for batch in chunk.batches()
        ]
        return max(found[:-1]), found[-1]

    for is_lowered in (False, True):
        name = f"restored-{is_lowered}"
        with monkeypatch.context() as patches:
            if is_lowered:
                patches.setattr(RestoredMetadata, "_partitions", lowered)
            restore(disks, tmp_path / name)
        with RestoredNode(tmp_path / name, tmp_path / f"node-{is_lowered}") as node:
            produced(node, "new", "events")
        before, after = last_epochs(node)
        assert (after > before) is not is_lowered


@pytest.mark.deep
def test_a_padded_time_index_is_taken_for_1970(disks: list[str], tmp_path: Path) -> None:
    """F1044: with ten years of retention a broker deletes nothing but such a segment."""
    restore(disks, tmp_path / "restored")
    for is_padded in (False, True):
        node = RestoredNode(tmp_path / "restored", tmp_path / f"node-{is_padded}")
        index = node.data / "events-0" / f"{0:020}.timeindex"
        if is_padded:
            index.write_bytes(index.read_bytes() + bytes(1200))
        with node:
            admin = AdminClient({"bootstrap.servers": node.bootstrap})
            set_config(admin, "events", "retention.ms", str(3650 * 24 * 3600 * 1000))
            time.sleep(5)
            start = ends(node, OffsetSpec.earliest())["events", 0]
        assert (start > 0) is is_padded


def set_config(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


@pytest.mark.deep
def test_offsets_are_used_twice_where_that_is_asked_for(disks: list[str], tmp_path: Path) -> None:
    """F1045: a sink that has stored an offset of the old cluster would skip the new records."""
    manifest = restore(disks, tmp_path / "restored", "--reuse-offsets")
    rows = {(row["topic"], row["partition"]): row for row in manifest["partitions"]}
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        for place, offset in produced(node, "new", "events", "plain").items():
            assert rows[place]["cut_offset"] <= offset < rows[place]["old_end_offset"]


@pytest.mark.deep
def test_retention_deletes_what_is_restored_unless_it_is_off(
    disks: list[str], tmp_path: Path
) -> None:
    """F1047: topic events keeps records for an hour."""
    restore(disks, tmp_path / "restored", "--keep-retention")
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        deadline = time.monotonic() + WAIT_SECONDS
        while not ends(node, OffsetSpec.earliest())["events", 0]:
            assert time.monotonic() < deadline
            time.sleep(0.5)


@pytest.mark.deep
def test_a_producer_with_an_id_of_the_log_is_acknowledged_and_not_written(
    disks: list[str], tmp_path: Path
) -> None:
    """F1050: at this moment a producer has written one record to topic again. A new producer that
    gets its id begins with the same sequence number."""
    manifest = restore(disks, tmp_path / "restored", as_of="2026-11-25T19:48:39.450Z")
    for has_id in (False, True):
        node = RestoredNode(tmp_path / "restored", tmp_path / f"node-{has_id}")
        if has_id:
            give_id(node.data / "again-0", manifest["next_producer_id"])
        with node:
            offset = produced(node, "new", "again")["again", 0]
            values = consumed(node, "read_uncommitted", "again")
        assert (values["again", 0, offset] == b"new") is not has_id
        assert (b"new" in values.values()) is not has_id


def give_id(partition: Path, producer_id: int) -> None:
    """Have the first batch of a log be of a producer, as if ids below had been given out again."""
    log = partition / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    size = read_header(data, 0).size
    data[PRODUCER_ID_POSITION : PRODUCER_ID_POSITION + 8] = producer_id.to_bytes(8, "big")
    data[:size] = with_checksum(bytes(data[:size]))
    log.write_bytes(data)
    for snapshot in partition.glob("*.snapshot"):
        snapshot.unlink()


@pytest.mark.deep
def test_a_coordinator_does_not_know_groups_of_another_partition(
    disks: list[str], tmp_path: Path
) -> None:
    """F1053."""
    restore(disks, tmp_path / "restored")
    with RestoredNode(tmp_path / "restored", tmp_path / "sound") as node:
        assert committed(node, "g-consumer")
    wrong = RestoredNode(tmp_path / "restored", tmp_path / "wrong")
    names = [f"__consumer_offsets-{number}" for number in (0, 2)]
    places = [wrong.data / name for name in names]
    places[0].rename(wrong.data / "moved")
    places[1].rename(places[0])
    (wrong.data / "moved").rename(places[1])
    for checkpoint in wrong.data.glob("*-checkpoint"):
        text = checkpoint.read_text()
        text = text.replace("__consumer_offsets 0 ", "moved ")
        text = text.replace("__consumer_offsets 2 ", "__consumer_offsets 0 ")
        checkpoint.write_text(text.replace("moved ", "__consumer_offsets 2 "))
    with wrong:
        assert not committed(wrong, "g-consumer")
