"""Kafka's own tools print of `kafkalog serve` what they printed of the broker with these files."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kafkalog import serve
from tests.support.broker.consumed_rows import FORMATTER_PROPERTIES, parse_rows
from tests.support.broker.java_tools import run_tool
from tests.support.golden.fixture_sets import consumed
from tests.support.serve.served_sets import Unpacked, served_paths

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
# Of other sets. The tools of 3.9 printed other columns of groups; the broker's largest timestamps
# are those of its own disk, without tiered storage.
OTHER_SETS = [
    *(("kafka39zk", name) for name in ("groups_describe", "transactions_list")),
    *(("kafka39zk", f"get_offsets_time-{number}") for number in (1, 2, 3)),
    *((name, f"get_offsets_time-{n}") for name in ("kafka08", "kafka010") for n in (1, 2)),
    *(("tiered43", f"get_offsets_time-{number}") for number in (1, 2, 4)),
]
# Where the broker was.
BROKER = "localhost:19092"
TRANSACTION, PRODUCER_STATE = (
    re.compile(
        r"coordinatorId=(\d+), state=(\w+), producerId=(\d+), producerEpoch=(\d+), "
        r"transactionTimeoutMs=(\d+), transactionStartTimeMs=(?:OptionalLong\[(\d+)\])?"
    ),
    re.compile(
        r"producerId=(\d+), producerEpoch=(\d+), lastSequence=(-?\d+), lastTimestamp=(-?\d+), "
        r"coordinatorEpoch=(?:OptionalInt\[(\d+)\])?.*, "
        r"currentTransactionStartOffset=(?:OptionalLong\[(\d+)\])?"
    ),
)


@pytest.fixture(scope="module")
def address(unpacked: Unpacked) -> Iterator[str]:
    with serve(str(unpacked("kafka44.logs") / "log-dirs")) as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def live(unpacked: Unpacked) -> dict[str, Any]:
    """What the Admin client got of the broker."""
    found: dict[str, Any] = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())
    return found


def printed(address: str, tool: str, arguments: Sequence[str]) -> bytes:
    given = ["--bootstrap-server", address, *arguments]
    return run_tool(f"org.apache.kafka.tools.{tool}", given).stdout


def table(text: str) -> list[list[str]]:
    """The fields of a table with tabs, without its heading."""
    return [[each.strip() for each in line.split("\t")] for line in text.splitlines()[1:]]


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


@pytest.mark.parametrize(("name", "golden"), OTHER_SETS)
def test_tools_print_what_they_printed_of_other_brokers(
    unpacked: Unpacked, name: str, golden: str
) -> None:
    tool, *arguments = {**TOOLS, "get_offsets_time-4": ("GetOffsetShell", "--time", "-4")}[golden]
    with serve(served_paths(unpacked, name)) as running:
        found = printed(running.bootstrap_servers, tool, arguments).decode()
        found = found.replace(running.bootstrap_servers, BROKER)
    expected = (unpacked(f"{name}.golden") / "tools" / f"{golden}.txt").read_text()
    assert lines(found) == lines(expected)


def test_kafka_topics_describes_a_topic_as_the_admin_client_did(
    live: dict[str, Any], address: str
) -> None:
    found = printed(address, "TopicCommand", ["--describe"]).decode()
    for name, topic in live["topics"].items():
        assert f"Topic: {name}\tTopicId: {topic['topicId']}\t" in found
        for each in topic["partitions"]:
            place = f"Topic: {name}\tPartition: {each['partition']}\tLeader: {each['leader']}\t"
            assert place in found


def test_kafka_configs_describes_what_the_admin_client_did(
    live: dict[str, Any], address: str
) -> None:
    given = ["--bootstrap-server", address, "--describe", "--entity-type", "topics"]
    text = run_tool("kafka.admin.ConfigCommand", given).stdout.decode()
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        heading = re.fullmatch(r"Dynamic configs for topic (.*) are:", line)
        config = re.fullmatch(r"  (.*?)=(.*) sensitive=false synonyms=.*", line)
        if heading:
            found[heading[1]] = {}
        elif config:
            found[list(found)[-1]][config[1]] = config[2]
    expected = live["topic_configs_not_default"]
    assert found.keys() == expected.keys()
    # Beside what is set for a topic, the Admin client listed what the broker set for all.
    own = {"cleanup.policy", "compression.type", "internal.segment.bytes", "segment.ms"}
    for name, configs in found.items():
        assert configs.items() <= expected[name].items(), name
        if not name.startswith("__"):
            assert expected[name].keys() & own == configs.keys() & own, name


def test_kafka_log_dirs_describes_the_sizes_on_disk(unpacked: Unpacked, address: str) -> None:
    folder = unpacked("kafka44.logs") / "log-dirs"
    text = printed(address, "LogDirsCommand", ["--describe"]).decode()
    (broker,) = json.loads(text.splitlines()[-1])["brokers"]
    (log_dir,) = broker["logDirs"]
    assert (broker["broker"], log_dir["logDir"]) == (1, str(folder))
    found = {each["partition"]: each["size"] for each in log_dir["partitions"]}
    # A broker adds up its segments. It does not list its metadata, nor what it has deleted.
    assert found == {
        path.name: sum(each.stat().st_size for each in path.glob("*.log"))
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith("__cluster_metadata")
        if not path.name.endswith("-delete")
    }


def test_kafka_transactions_describes_what_the_admin_client_did(
    live: dict[str, Any], address: str
) -> None:
    for name in ("shop.tid-1", "shop.tid-hanging"):
        arguments = ["describe", "--transactional-id", name]
        (row,) = table(printed(address, "TransactionsCommand", arguments).decode())
        coordinator, state, producer, epoch, timeout, start = matched(
            TRANSACTION, live["transactions"][name]["describe"]
        )
        expected = [coordinator, name, producer, epoch, state, timeout, start or "None"]
        assert row[:7] == expected


def test_kafka_transactions_describes_producers_as_the_admin_client_did(
    live: dict[str, Any], address: str
) -> None:
    for number in ("0", "1"):
        arguments = ["describe-producers", "--topic", "shop.tx", "--partition", number]
        found = table(printed(address, "TransactionsCommand", arguments).decode())
        expected = []
        for state in live["producers"][f"shop.tx-{number}"]:
            producer, epoch, sequence, time, coordinator, start = matched(PRODUCER_STATE, state)
            coordinator, start = coordinator or "-1", start or "None"
            expected.append([producer, epoch, coordinator, sequence, time, start])
        assert sorted(row[:6] for row in found) == sorted(expected)
        assert len(expected) > 5


def matched(pattern: re.Pattern[str], text: str) -> tuple[str | None, ...]:
    match = pattern.search(text)
    assert match is not None, text
    return match.groups()


def test_the_verifiable_consumer_counts_what_the_consumer_got(
    unpacked: Unpacked, address: str
) -> None:
    rows = consumed(unpacked("kafka44.golden"), "shop.idem", "read_uncommitted")
    arguments = ["--topic", "shop.idem", "--group-id", "verifies", "--reset-policy", "earliest"]
    arguments += ["--max-messages", str(len(rows))]
    text = printed(address, "VerifiableConsumer", arguments).decode()
    said = [json.loads(line) for line in text.splitlines()]
    assert sum(each["count"] for each in said if each["name"] == "records_consumed") == len(rows)
    commits = [each for each in said if each["name"] == "offsets_committed"]
    assert all(each["success"] for each in commits)
    assert commits[-1]["offsets"][0]["offset"] == rows[-1]["offset"] + 1


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
