"""What the names of directories and files say, by Kafka's rules. F90 to F93, T32."""

import pytest

from kafkalog.storage.names import (
    INTERNAL_TOPICS,
    PartitionName,
    any_base_offset,
    partition_name,
    segment_base_offset,
)
from tests.support.logs.log_dirs import UNIQUE

LONGEST_TOPIC = "t" * 249


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("orders-0", "orders", 0),
        ("orders-12", "orders", 12),
        ("web-shop-orders-3", "web-shop-orders", 3),
        ("eu.orders.v2-3", "eu.orders.v2", 3),
        ("a.b-c_d-7", "a.b-c_d", 7),
        ("2024-01-0", "2024-01", 0),
        ("--1", "-", 1),
        ("Orders_EU-2147483647", "Orders_EU", 2**31 - 1),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        (f"{LONGEST_TOPIC}-0", LONGEST_TOPIC, 0),
        # Looks like a mark, but ends in a partition.
        (f"orders-0.{UNIQUE}-delete-3", f"orders-0.{UNIQUE}-delete", 3),
    ],
)
def test_a_partition_follows_the_last_dash(name: str, topic: str, partition: int) -> None:
    # F90, T32.
    assert partition_name(name) == PartitionName(topic, partition, mark=None)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "orders-",
        "orders-x",
        "orders-1x",
        "-0",
        "orders-0\n",
        "orders-0 ",
        "orders--",
        "orders-٣",
        "bücher-0",
        "a b-0",
        "lost+found",
        "remote-log-index-cache",
        "orders-0.tmp",
        f"{LONGEST_TOPIC}t-0",
    ],
)
def test_other_names_are_not_partitions(name: str) -> None:
    # F90.
    assert partition_name(name) is None


@pytest.mark.parametrize("name", ["backup-2147483648", "backup-9999999999"])
def test_a_number_too_large_for_a_partition_is_none(name: str) -> None:
    # F90.
    assert partition_name(name) is None


@pytest.mark.parametrize("mark", ["delete", "stray", "future"])
@pytest.mark.parametrize("topic", ["orders", "web-shop-orders", "eu.orders.v2", "t" * 213])
def test_a_marked_directory_tells_topic_partition_and_mark(topic: str, mark: str) -> None:
    # F92, T32.
    assert partition_name(f"{topic}-5.{UNIQUE}-{mark}") == PartitionName(topic, 5, mark)


@pytest.mark.parametrize(
    "name",
    [
        f"orders-0.{UNIQUE[:-1]}-delete",
        f"orders-0.{UNIQUE}0-delete",
        f"orders-0.{UNIQUE[:-1]}g-delete",
        f"orders-0.{UNIQUE}-moved",
        f"orders-0.{UNIQUE}-deleted",
        f"orders-0.{UNIQUE}delete",
        f"orders-0{UNIQUE}-delete",
        f"orders.{UNIQUE}-delete",
    ],
)
def test_what_only_resembles_a_mark_is_none(name: str) -> None:
    # F92.
    assert partition_name(name) is None


@pytest.mark.parametrize(
    ("name", "base_offset"),
    [
        ("00000000000000000000.log", 0),
        ("00000000000000001234.log", 1234),
        ("09223372036854775807.log", 2**63 - 1),
    ],
)
def test_a_segment_is_named_by_its_base_offset(name: str, base_offset: int) -> None:
    # F91.
    assert (segment_base_offset(name), any_base_offset(name)) == (base_offset, base_offset)


@pytest.mark.parametrize("mark", [".deleted", ".cleaned", ".swap"])
def test_a_marked_file_is_not_a_live_segment_but_has_a_base_offset(mark: str) -> None:
    # F92, T32.
    name = f"00000000000000000042.log{mark}"
    assert (segment_base_offset(name), any_base_offset(name)) == (None, 42)


def test_a_copy_from_tiered_storage_has_a_base_offset() -> None:
    name = "00000000000000000042-k3uYpqEHTVi8vBZ0QjV0aw.log"
    assert (segment_base_offset(name), any_base_offset(name)) == (None, 42)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".log",
        "0.log",
        "0000000000000000000.log",
        "000000000000000000000.log",
        "-0000000000000000001.log",
        "0000000000000000000x.log",
        "09223372036854775808.log",
        "99999999999999999999.log",
        # Digits of other scripts, and what looks like one.
        "٠" * 20 + ".log",
        "0" * 19 + "²" + ".log",
        "00000000000000000000",
        "segment.bin",
        "leader-epoch-checkpoint",
    ],
)
def test_other_files_have_no_base_offset(name: str) -> None:
    # F91.
    assert (segment_base_offset(name), any_base_offset(name)) == (None, None)


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex", "snapshot", "log.tmp"])
def test_a_segments_other_files_are_not_a_logs(suffix: str) -> None:
    # F91.
    assert segment_base_offset(f"00000000000000000000.{suffix}") is None


def test_there_are_four_internal_topics() -> None:
    # F93.
    assert (
        frozenset(
            {
                "__consumer_offsets",
                "__transaction_state",
                "__share_group_state",
                "__cluster_metadata",
            }
        )
        == INTERNAL_TOPICS
    )
