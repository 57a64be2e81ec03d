"""Leader epochs of batches beside those of `leader-epoch-checkpoint`. Rule: F929."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.leader_epochs import CarriedEpoch, EpochStart, first_contradiction
from kafkalog.inspection.logs.carried_epochs import carried_epochs
from kafkalog.inspection.logs.replica_facts import known_leader_epochs, replica_sets
from kafkalog.inspection.partitions.segments import segment_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.replicas.diverged_replicas import write_replica

# Epoch 0 wrote the offsets 0 to 9, epoch 3 10 to 19, epoch 4 none, epoch 5 20 to 29.
EPOCHS = {0: range(10), 3: range(10, 20), 5: range(20, 30)}
IN_FILE = [(0, 0), (3, 10), (5, 20)]


def batches(offsets: Sequence[int], epoch: int) -> list[bytes]:
    fields = BatchFields(leader_epoch=epoch)
    return [write_batch([Record(each, 1, 0, None, b"v")], fields) for each in offsets]


ALL = [batch for epoch, offsets in EPOCHS.items() for batch in batches(offsets, epoch)]


def only_log(home: Path) -> PartitionLog:
    (log,) = find_partitions([str(home / "1")])
    return log


def findings(home: Path) -> list[tuple[str, str]]:
    rows: list[Any] = list(segment_rows(only_log(home)))
    return [
        (finding["kind"], finding["detail"])
        for row in rows
        for finding in row["index_findings"]
        if finding["file"] == "leader-epoch-checkpoint"
    ]


@pytest.mark.parametrize(
    ("entries", "log"),
    [
        pytest.param(IN_FILE, ALL, id="as the leaders wrote"),
        pytest.param([*IN_FILE, (9, 30)], ALL, id="the newest leader has not written yet"),
        pytest.param(
            [(0, 0), (3, 10), (4, 18), (5, 20)],
            [*ALL[:18], *ALL[20:]],
            id="the cleaner has removed what a leader wrote",
        ),
        pytest.param(
            IN_FILE, [*ALL[:10], *ALL[13:]], id="the cleaner has removed what it wrote first"
        ),
    ],
)
def test_what_brokers_write_is_sound(
    entries: list[tuple[int, int]], log: list[bytes], tmp_path: Path
) -> None:
    write_replica(tmp_path, 1, log, entries)
    assert findings(tmp_path) == []


def test_a_file_that_begins_at_the_log_start_is_sound(tmp_path: Path) -> None:
    # After a deletion of records the batches before are still in the segment.
    write_replica(tmp_path, 1, ALL, [(3, 12), (5, 20)])
    (tmp_path / "1" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (None, "is not there"),
        ("", "has no epoch"),
        ("0\n0\n", "has no epoch"),
        ("0\n1\n0 0\n", "has epoch 0 from offset 0"),
        ("0\n2\n3 10\n5 20\n", "has epoch 3 from offset 10, 5 from offset 20"),
        ("0\n3\n0 0\n3 11\n5 20\n", "has epoch 0 from offset 0, 3 from offset 11"),
        ("0\n3\n0 0\n3 8\n5 20\n", "has epoch 0 from offset 0, 3 from offset 8"),
        ("0\n4\n0 0\n3 10\n5 20\n7 28\n", "7 from offset 28"),
    ],
)
def test_a_file_that_contradicts_the_batches_is_a_finding(
    text: str | None, has: str, tmp_path: Path
) -> None:
    log = write_replica(tmp_path, 1, ALL, [])
    if text is not None:
        (log.parent / "leader-epoch-checkpoint").write_text(text)
    ((kind, detail),) = findings(tmp_path)
    assert kind == "leader_epochs" and has in detail
    assert "epoch 0 from offset 0, 3 from offset 10, 5 from offset 20" in detail


def test_what_a_broker_recovers_is_no_finding(tmp_path: Path) -> None:
    # F113: a copy of a running broker's directory, its file older than the log.
    write_replica(tmp_path, 1, ALL, [(0, 0), (3, 10)], is_clean=False)
    assert findings(tmp_path) == []
    # Not what lies in segments before the recovery point.
    log = tmp_path / "1" / "orders-0" / f"{25:020d}.log"
    log.write_bytes(b"".join(ALL[25:]))
    (log.parent / f"{0:020d}.log").write_bytes(b"".join(ALL[:25]))
    (tmp_path / "1" / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 25\n")
    assert [kind for kind, _ in findings(tmp_path)] == ["leader_epochs"]


def test_the_metadatas_log_is_recovered_after_a_clean_stop_too(tmp_path: Path) -> None:
    # F113, F920
    write_replica(tmp_path, 1, ALL, [(0, 0), (3, 10)])
    assert [kind for kind, _ in findings(tmp_path)] == ["leader_epochs"]
    (tmp_path / "1" / "orders-0").rename(tmp_path / "1" / "__cluster_metadata-0")
    assert findings(tmp_path) == []


def test_epochs_of_all_segments_are_found_by_few_headers(tmp_path: Path) -> None:
    log = write_replica(tmp_path, 1, ALL[:4], [])
    for base, end in ((4, 8), (8, 12), (12, 30)):
        (log.parent / f"{base:020d}.log").write_bytes(b"".join(ALL[base:end]))
    assert carried_epochs(only_log(tmp_path)) == [
        CarriedEpoch(0, 0, 9),
        CarriedEpoch(3, 10, 19),
        CarriedEpoch(5, 20, 29),
    ]


def test_a_cleaned_segment_begins_after_the_offset_in_its_name(tmp_path: Path) -> None:
    """F1215: all that is left of the first segment is of epoch 3."""
    log = write_replica(tmp_path, 1, ALL[12:15], [(0, 0), (3, 10)])
    (log.parent / f"{15:020d}.log").write_bytes(b"".join(ALL[15:20]))
    assert carried_epochs(only_log(tmp_path)) == [CarriedEpoch(3, 12, 19)]
    assert findings(tmp_path) == []
    # No checksum covers the offset: one outside of the segment says nothing.
    first = log.parent / f"{0:020d}.log"
    first.write_bytes((99).to_bytes(8, "big") + first.read_bytes()[8:])
    assert carried_epochs(only_log(tmp_path)) == [CarriedEpoch(3, 0, 19)]


def test_the_epochs_of_the_batches_count_where_the_file_lacks_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_replica(tmp_path, 1, ALL, [])
    assert known_leader_epochs(only_log(tmp_path)) == tuple(EpochStart(*each) for each in IN_FILE)
    assert "the epochs of the batches count" in caplog.text


def test_a_replica_without_the_file_is_still_the_best(tmp_path: Path) -> None:
    # Broker 1 led last; broker 2 has more of an earlier leader.
    write_replica(tmp_path, 1, ALL, [])
    earlier = [*batches(range(10), 0), *batches(range(10, 40), 3)]
    write_replica(tmp_path, 2, earlier, [(0, 0), (3, 10)])
    (found,) = replica_sets(find_partitions([str(tmp_path / "1"), str(tmp_path / "2")]))
    assert found.best.log_dir.broker_id == 1
    assert found.agreed_ends == (30, 20)


def test_logs_of_old_formats_and_entries_without_batches_contradict_nothing() -> None:
    assert first_contradiction([], [], 0) is None
    assert first_contradiction([EpochStart(7, 5)], [], 0) is None
    carried = [CarriedEpoch(3, 10, 19)]
    assert first_contradiction([EpochStart(3, 0)], carried, 0) is None
    assert first_contradiction([EpochStart(3, 15)], carried, 15) is None
    assert first_contradiction([EpochStart(3, 15)], carried, 0) == carried[0]
