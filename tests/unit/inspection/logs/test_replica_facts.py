"""Which logs are replicas, and what is looked at to order them. Rules: F171 and F172."""

from pathlib import Path

import pytest

from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.inspection.logs.replica_facts import leader_epochs, replica_facts, replica_sets
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.log_dirs import add_meta_properties, log_name
from tests.support.logs.samples import batch


def write_replica(log_dir: Path, broker: int, *batches: bytes) -> Path:
    """A broker's log directory with orders-0 in one segment; its log file."""
    add_meta_properties(log_dir, node_id=broker)
    partition = log_dir / "orders-0"
    partition.mkdir()
    (partition / log_name(0)).write_bytes(write_segment(batches, 0).by_name[log_name(0)])
    return partition / log_name(0)


def test_replicas_are_ordered_and_other_logs_are_alone(tmp_path: Path) -> None:
    write_replica(tmp_path / "b1", 1, batch(0))
    longer = write_replica(tmp_path / "b2", 2, batch(0), batch(3))
    paths = [str(tmp_path / "b1"), str(tmp_path / "b2")]
    (found,) = replica_sets(find_partitions(paths))
    assert [log.log_dir.broker_id for log in found.logs] == [2, 1]
    # Files by their own paths, live and deleted ones of one directory, do not count as replicas.
    deleted = longer.with_name(log_name(0, ".deleted"))
    deleted.write_bytes(longer.read_bytes())
    files = find_partitions([str(longer), str(deleted)])
    assert [len(found.logs) for found in replica_sets(files)] == [1, 1]


@pytest.mark.parametrize(
    ("position", "content", "end"),
    [
        (None, b"", 9),
        # Of the last batch: a byte of its payload, its last offset delta, which its CRC covers.
        (100, b"\xff", 6),
        (23, b"\x7f", 6),
    ],
)
def test_a_log_ends_behind_its_last_sound_batch(
    position: int | None, content: bytes, end: int, tmp_path: Path
) -> None:
    path = write_replica(tmp_path, 1, batch(0), batch(3), batch(6))
    if position is not None:
        data = bytearray(path.read_bytes())
        place = len(batch(0) + batch(3)) + position
        data[place : place + 1] = content
        path.write_bytes(data)
    (log,) = find_partitions([str(tmp_path)])
    facts = replica_facts(log)
    assert (facts.log_start, facts.log_end) == (0, end)


@pytest.mark.parametrize(
    ("text", "epochs"),
    [("0\n2\n1 0\n4 7\n", (EpochStart(1, 0), EpochStart(4, 7))), ("", ()), ("0\n9\n1 0\n", ())],
)
def test_leader_epochs_are_the_checkpoints_or_not_known(
    text: str, epochs: tuple[EpochStart, ...], tmp_path: Path
) -> None:
    write_replica(tmp_path, 1, batch(0)).with_name("leader-epoch-checkpoint").write_text(text)
    (log,) = find_partitions([str(tmp_path)])
    assert leader_epochs(log) == epochs
