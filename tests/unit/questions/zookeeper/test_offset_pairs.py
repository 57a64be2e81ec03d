"""Znodes and commits of the same partition stand side by side. Rules: F470, F475."""

from typing import Any

from kafkalog.questions.zookeeper.offset_pairs import offset_pairs

_ZNODES = (
    *("group_id", "topic", "partition", "broker_id", "committed_offset", "mtime_ms", "path"),
    *("znode_version", "detail"),
)
_COMMITS = (
    *("group_id", "topic", "partition", "committed_offset", "commit_timestamp_ms"),
    "internal_partition",
)


def test_what_kafka_0_7_left_stands_by_itself() -> None:
    # F470: [partition_id] and [broker_id-partition_id] of one topic
    root = "/consumers/g/offsets/t"
    znodes: list[tuple[Any, ...]] = [
        ("g", "t", 0, broker_id, offset, 1, f"{root}/{name}", version, None)
        for name, broker_id, offset, version in (
            ("0", None, 40, 2),
            ("0-0", 0, 7_000, 3),
            ("1-0", 1, 9_000, 4),
        )
    ]
    znodes.append(("g", "t", 1, None, None, 1, f"{root}/1", 0, "no data"))
    commits = [("g", "t", partition, 50, 2, 0) for partition in (0, 1, 2)]
    found = offset_pairs(
        [dict(zip(_ZNODES, row, strict=True)) for row in znodes],
        [dict(zip(_COMMITS, row, strict=True)) for row in commits],
        None,
    )
    names = ("partition", "zookeeper_offset", "kafka_offset", "znode_version", "detail")
    of_oldest = "an offset of Kafka 0.7: a place in the log of one broker"
    rows = sorted(
        (tuple(row[name] for name in names) for row in found),
        key=lambda row: (row[0], -1 if row[3] is None else row[3]),
    )
    assert rows == [
        (0, 40, 50, 2, None),
        (0, None, None, 3, of_oldest),
        (0, None, None, 4, of_oldest),
        (1, None, 50, 0, "no data"),
        (2, None, 50, None, None),
    ]
