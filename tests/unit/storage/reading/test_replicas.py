"""Which replica counts and what each lacks. Rules: F170 to F173 and F176."""

import re
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.format.offsets import OffsetSpan, subtract
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.replicas import (
    BatchFact,
    ReplicaFacts,
    believed_end,
    by_lineage,
    compare,
    epoch_divergence,
)
from kafkalog.wire.checksums import crc32c
from tests.support.logs.log_dirs import add_meta_properties, add_partition


def facts(start: int, end: int, *epochs: tuple[int, int]) -> ReplicaFacts:
    return ReplicaFacts(start, end, tuple(EpochStart(*entry) for entry in epochs))


def fact(first: int, last: int, crc: int = 7, size: int = 70) -> BatchFact:
    return BatchFact(first, last, crc, size)


@pytest.mark.parametrize(
    ("brokers", "clusters", "topics", "reason"),
    [
        ((1, 1), "ab", "AA", "they are of different clusters, a and b"),
        ((1, 2), "ab", "AA", "they are of different clusters, a and b"),
        ((1, 1), "aa", "AA", "both say that they are of broker 1"),
    ],
)
def test_what_cannot_belong_together_is_refused_with_the_reason(
    brokers: tuple[int, int], clusters: str, topics: str, reason: str, tmp_path: Path
) -> None:
    # F170
    for number in (0, 1):
        log_dir = tmp_path / f"disk{number}"
        add_meta_properties(log_dir, clusters[number], brokers[number])
        partition = add_partition(log_dir, "orders-0", 0)
        text = f"version: 0\ntopic_id: {topics[number] * 22}\n"
        (partition / "partition.metadata").write_text(text)
    with pytest.raises(LogDirError, match=re.escape(reason)) as caught:
        find_partitions([str(tmp_path / "disk*")])
    for number in (0, 1):
        assert str(tmp_path / f"disk{number}" / "orders-0") in str(caught.value)


def test_brokers_of_one_cluster_have_replicas_and_one_broker_has_several_disks(
    tmp_path: Path,
) -> None:
    for disk, broker, topic in (("a", 1, "orders-0"), ("b", 1, "users-0"), ("c", 2, "orders-0")):
        add_meta_properties(tmp_path / disk, node_id=broker)
        add_partition(tmp_path / disk, topic, 0)
    found = find_partitions([str(tmp_path / "*")])
    assert [(log.name, log.log_dir.broker_id) for log in found] == [
        ("orders-0", 1),
        ("orders-0", 2),
        ("users-0", 1),
    ]


@pytest.mark.parametrize(
    ("replicas", "order"),
    [
        # F171: the latest epoch wins over the longest log, then the end, then the start.
        ([facts(0, 90, (0, 0)), facts(0, 50, (0, 0), (1, 40))], [1, 0]),
        ([facts(0, 40, (1, 0)), facts(0, 50, (1, 0)), facts(0, 45, (1, 0))], [1, 2, 0]),
        ([facts(10, 50, (1, 0)), facts(0, 50, (1, 0))], [1, 0]),
        ([facts(0, 50, (1, 0)), facts(0, 50, (1, 0))], [0, 1]),
        # No epochs are known of formats 0 and 1.
        ([facts(0, 40), facts(0, 50)], [1, 0]),
        # A leader that wrote nothing yet.
        ([facts(0, 50, (0, 0)), facts(0, 45, (0, 0), (3, 45))], [1, 0]),
    ],
)
def test_the_best_is_of_the_latest_epoch_and_the_longest(
    replicas: list[ReplicaFacts], order: list[int]
) -> None:
    assert by_lineage(replicas) == order


@pytest.mark.parametrize(
    ("replica", "best", "offset"),
    [
        # F173
        (facts(0, 50, (0, 0)), facts(0, 90, (0, 0)), None),
        (facts(0, 50, (0, 0)), facts(0, 90, (0, 0), (1, 50)), None),
        (facts(0, 51, (0, 0)), facts(0, 90, (0, 0), (1, 50)), 50),
        # Each was cut off and had a leader of its own.
        (facts(0, 70, (0, 0), (1, 40)), facts(0, 60, (0, 0), (2, 30)), 30),
        (facts(0, 70, (0, 0), (1, 40)), facts(0, 60, (0, 0), (2, 50)), 40),
        # Deleting from the start moves the first entry.
        (facts(20, 50, (1, 20)), facts(0, 90, (0, 0), (1, 10)), None),
        (facts(0, 50, (0, 0), (1, 10)), facts(20, 90, (1, 20)), None),
        (facts(0, 50), facts(0, 90, (0, 0)), None),
        # F1215: a follower of 4.4.0 that was down while the leader's cleaner was at work.
        (facts(0, 1121, (0, 0), (1, 139)), facts(0, 1243, (0, 0), (1, 433)), None),
        (facts(0, 1243, (0, 0), (1, 433)), facts(0, 1250, (0, 0), (1, 139)), None),
        (facts(0, 900, (0, 0), (1, 139), (2, 800)), facts(0, 950, (0, 0), (1, 433), (3, 700)), 700),
    ],
)
def test_ways_part_where_leader_epochs_differ(
    replica: ReplicaFacts, best: ReplicaFacts, offset: int | None
) -> None:
    assert epoch_divergence(replica, best) == offset


def test_a_damaged_base_offset_at_the_end_is_known_by_another_replica() -> None:
    # F172
    sound = ReplicaFacts(0, 6, (), 0, (fact(0, 2, 1), fact(3, 5, 2)))
    moved = ReplicaFacts(0, 1029, (), 0, (fact(0, 2, 1), fact(1026, 1028, 2)))
    assert believed_end(moved, [sound]) == 3
    assert believed_end(sound, [moved]) == 6
    assert by_lineage([moved, sound]) == [1, 0]
    # Other bytes, and no replica to compare with.
    other = ReplicaFacts(0, 1029, (), 0, (fact(0, 2, 1), fact(1026, 1028, 3)))
    assert believed_end(other, [sound]) == 1029
    assert believed_end(moved, []) == 1029


def test_equal_ranges_have_a_checksum_over_their_batches() -> None:
    # F176
    best = [fact(0, 2, 1), fact(3, 5, 2), fact(8, 9, 3)]
    found = compare(best, best)
    first = crc32c((1).to_bytes(4, "big") + (2).to_bytes(4, "big"))
    second = crc32c((3).to_bytes(4, "big"))
    assert found.equal == [(OffsetSpan(0, 6), first), (OffsetSpan(8, 10), second)]
    assert found.different == found.missing == found.extra == []


def test_what_one_lacks_and_what_differs() -> None:
    best = [fact(0, 2, 1), fact(3, 5, 2), fact(6, 8, 3), fact(9, 11, 4)]
    replica = [fact(0, 2, 1), fact(6, 7, 9), fact(8, 8, 9), fact(9, 11, 4), fact(12, 14, 5)]
    found = compare(replica, best)
    assert [span for span, _ in found.equal] == [(0, 3), (9, 12)]
    assert found.missing == [(3, 6)]
    assert found.different == [(6, 9)]
    assert found.extra == [(12, 15)]


@pytest.mark.parametrize(
    ("whole", "taken", "left"),
    [
        ([(0, 10)], [], [(0, 10)]),
        ([(0, 10)], [(0, 10)], []),
        ([(0, 10)], [(3, 5)], [(0, 3), (5, 10)]),
        ([(0, 10)], [(8, 20), (0, 1), (4, 4)], [(1, 8)]),
        ([(5, 5)], [], []),
        ([(0, 3), (6, 9)], [(2, 7)], [(0, 2), (7, 9)]),
    ],
)
def test_offsets_left_when_others_are_taken(
    whole: list[tuple[int, int]], taken: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    spans = [OffsetSpan(*span) for span in whole]
    assert subtract(spans, [OffsetSpan(*span) for span in taken]) == left
