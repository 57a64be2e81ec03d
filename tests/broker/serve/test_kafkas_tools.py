"""Kafka's own tools print of `kafkalog serve` what they printed of the broker with these files."""

import json
from collections.abc import Iterator, Sequence

import pytest

from kafkalog import serve
from tests.support.broker.consumed_rows import FORMATTER_PROPERTIES, parse_rows
from tests.support.broker.java_tools import run_tool
from tests.support.golden.fixture_sets import consumed
from tests.support.serve.served_sets import Unpacked

pytestmark = pytest.mark.deep

GROUPS = ("consumer.group.ConsumerGroupCommand", "--describe", "--all-groups")
# By the file with what a tool printed.
TOOLS = {
    "groups_describe": GROUPS,
    "groups_state": (*GROUPS, "--state"),
    "groups_members": (*GROUPS, "--members", "--verbose"),
    "transactions_list": ("TransactionsCommand", "list"),
    "get_offsets_time-1": ("GetOffsetShell", "--time", "-1"),
    "get_offsets_time-2": ("GetOffsetShell", "--time", "-2"),
    "get_offsets_time-3": ("GetOffsetShell", "--time", "-3"),
}
# Where the broker was.
BROKER = "localhost:19092"


@pytest.fixture(scope="module")
def address(unpacked: Unpacked) -> Iterator[str]:
    with serve(str(unpacked("kafka44.logs") / "log-dirs")) as running:
        yield running.bootstrap_servers


def printed(address: str, tool: str, arguments: Sequence[str]) -> bytes:
    given = ["--bootstrap-server", address, *arguments]
    return run_tool(f"org.apache.kafka.tools.{tool}", given).stdout


def lines(text: str) -> list[str]:
    """The lines in an order of their own: the tools go through hash tables."""
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("golden", TOOLS)
def test_tools_print_what_they_printed_of_the_broker(
    unpacked: Unpacked, address: str, golden: str
) -> None:
    tool, *arguments = TOOLS[golden]
    found = printed(address, tool, arguments).decode().replace(address, BROKER)
    expected = (unpacked("kafka44.golden") / "tools" / f"{golden}.txt").read_text()
    assert lines(found) == lines(expected)


def test_kafka_topics_describes_a_topic_as_the_admin_client_did(
    unpacked: Unpacked, address: str
) -> None:
    live = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["topics"]
    found = printed(address, "TopicCommand", ["--describe"]).decode()
    for name, topic in live.items():
        assert f"Topic: {name}\tTopicId: {topic['topicId']}\t" in found
        for each in topic["partitions"]:
            place = f"Topic: {name}\tPartition: {each['partition']}\tLeader: {each['leader']}\t"
            assert place in found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_the_console_consumer_reads_in_a_group(
    unpacked: Unpacked, address: str, level: str, protocol: str
) -> None:
    formatter = [part for each in FORMATTER_PROPERTIES for part in ("--formatter-property", each)]
    text = printed(
        address,
        "consumer.ConsoleConsumer",
        [
            *("--topic", "shop.tx", "--from-beginning", "--isolation-level", level),
            *("--group", f"{level}-{protocol}", "--timeout-ms", "8000"),
            *("--command-property", f"group.protocol={protocol}"),
            *formatter,
        ],
    )
    rows = parse_rows(text)
    expected = consumed(unpacked("kafka44.golden"), "shop.tx", level)
    assert sorted((row.partition, row.offset, row.key, row.value) for row in rows) == sorted(
        (row["partition"], row["offset"], row["key"], row["value"]) for row in expected
    )
