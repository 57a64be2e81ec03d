"""What is read: the same paths as in jobs, of them the topics and partitions that are named."""

import pytest

from kafkalog.command_line.inputs import logs_of_topics
from kafkalog.errors import LogDirError, OptionError
from tests.support.repository import ROOT

LOG_DIR = str(ROOT / "examples/log-dirs/kafka-4.4")


def test_without_a_filter_internal_topics_are_read_too() -> None:
    assert {"__consumer_offsets", "shop.tx"} <= {log.topic for log in logs_of_topics([LOG_DIR])}


def test_topics_and_partitions_are_chosen_by_name_and_number() -> None:
    found = logs_of_topics([LOG_DIR], ["shop.multi-3-part-0", "shop.tx"], [0, 2])
    assert [log.name for log in found] == [
        "shop.multi-3-part-0-0",
        "shop.multi-3-part-0-2",
        "shop.tx-0",
    ]


def test_a_topic_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(OptionError, match=r"--topic: 'orders' .*: __consumer_offsets,"):
        logs_of_topics([LOG_DIR], ["orders"])


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match=r"--partition: '9' .*hold: 0$"):
        logs_of_topics([LOG_DIR], ["shop.tx"], [9])


def test_a_path_that_is_not_there_is_refused() -> None:
    with pytest.raises(LogDirError, match="no such file or directory"):
        logs_of_topics(["/nowhere/at/all"])
