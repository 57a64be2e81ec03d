"""`kafkalog serve` answers as the broker did that wrote the files: what its Admin client got."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_assignment, serve
from tests.support.serve.raw_client import RawClient, raw_client

Unpacked = Callable[[str], Path]
Live = dict[str, Any]

# What the Admin client asked for, as timestamps of ListOffsets. T0 is the first record's time.
T0 = 1_700_000_000_000
QUESTIONS = {
    "earliest": (-2, 0),
    "latest": (-1, 0),
    "latest_read_committed": (-1, 1),
    "max_timestamp": (-3, 0),
    "for_time_0": (0, 0),
    "for_time_t0_plus_20000": (T0 + 20_000, 0),
    "for_time_t0_plus_100000": (T0 + 100_000, 0),
    "for_time_year_2099": (4_070_908_800_000, 0),
}


@pytest.fixture(scope="module")
def live(unpacked: Unpacked) -> Live:
    found: Live = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())
    return found


@pytest.fixture(scope="module")
def client(unpacked: Unpacked) -> Iterator[RawClient]:
    with (
        serve(str(unpacked("kafka44.logs") / "log-dirs")) as running,
        raw_client(running.bootstrap_servers) as found,
    ):
        yield found


def by_topic(partitions: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, _, number in (name.rpartition("-") for name in sorted(partitions)):
        found.setdefault(topic, []).append(int(number))
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_offsets_with_their_epochs_and_times(client: RawClient, live: Live, question: str) -> None:
    timestamp_ms, isolation_level = QUESTIONS[question]
    expected = live["offsets"][question]
    asked = [
        {
            "name": topic,
            "partitions": [
                {"partitionIndex": number, "timestamp": timestamp_ms} for number in numbers
            ],
        }
        for topic, numbers in by_topic(list(expected)).items()
    ]
    answer = client.ask("ListOffsets", replicaId=-1, isolationLevel=isolation_level, topics=asked)
    found = {
        f"{topic['name']}-{each['partitionIndex']}": {
            "leaderEpoch": None if each["leaderEpoch"] < 0 else each["leaderEpoch"],
            "offset": each["offset"],
            "timestamp": each["timestamp"],
        }
        for topic in answer["topics"]
        for each in topic["partitions"]
    }
    assert found == expected


def test_topics(client: RawClient, live: Live) -> None:
    answer = client.ask("Metadata", topics=None)
    assert answer["clusterId"] == live["cluster"]["clusterId"]
    assert [each["nodeId"] for each in answer["brokers"]] == [1]
    found = {
        topic["name"]: (
            topic["topicId"],
            topic["isInternal"],
            [(each["partitionIndex"], each["leaderId"]) for each in topic["partitions"]],
        )
        for topic in answer["topics"]
    }
    assert found == {
        name: (
            topic["topicId"],
            topic["internal"],
            [(each["partition"], each["leader"]) for each in topic["partitions"]],
        )
        for name, topic in live["topics"].items()
    }


def test_groups_and_what_they_have_committed(client: RawClient, live: Live) -> None:
    listed = client.ask("ListGroups", typesFilter=["classic", "Consumer"])["groups"]
    assert {each["groupId"] for each in listed} == set(live["groups"])
    kinds = []
    for name, group in live["groups"].items():
        described = group["describe"]
        is_classic = "type=Classic" in described["text"]
        kinds.append(is_classic)
        found = described_group(client, name, is_classic)
        assert found["groupState"] == described["state"], name
        if is_classic:
            members = {
                each["memberId"]: sorted(
                    f"{topic}-{number}"
                    for topic, numbers in assigned(each["memberAssignment"])
                    for number in numbers
                )
                for each in found["members"]
            }
            assert members == {
                each["consumerId"]: re.findall(r"[^\[\], ]+", each["assignment"])
                for each in described["members"]
            }, name
        offsets = client.ask(
            "OffsetFetch", 9, groups=[{"groupId": name, "topics": None}], requireStable=False
        )
        assert {
            f"{topic['name']}-{each['partitionIndex']}": {
                "leaderEpoch": None
                if each["committedLeaderEpoch"] < 0
                else each["committedLeaderEpoch"],
                "metadata": each["metadata"],
                "offset": each["committedOffset"],
            }
            for topic in offsets["groups"][0]["topics"]
            for each in topic["partitions"]
        } == group["offsets"], name
    assert (kinds.count(True), kinds.count(False)) == (10, 5)


def described_group(client: RawClient, name: str, is_classic: bool) -> dict[str, Any]:
    if is_classic:
        answer = client.ask("DescribeGroups", groups=[name])
    else:
        answer = client.ask("ConsumerGroupDescribe", groupIds=[name])
    found: dict[str, Any] = answer["groups"][0]
    assert found["errorCode"] == 0
    return found


def assigned(data: bytes) -> list[tuple[str, list[int]]]:
    found = read_assignment(data)["assignedPartitions"]
    return [(each["topic"], each["partitions"]) for each in found]


def test_transactions(client: RawClient, live: Live) -> None:
    answer = client.ask("ListTransactions", stateFilters=[], producerIdFilters=[])
    found = {
        each["transactionalId"]: (each["producerId"], each["transactionState"])
        for each in answer["transactionStates"]
    }
    expected = live["transactions"]
    assert found == {name: (each["producerId"], each["state"]) for name, each in expected.items()}
    described = client.ask("DescribeTransactions", transactionalIds=list(expected))
    for each in described["transactionStates"]:
        words = expected[each["transactionalId"]]["describe"]
        assert f"producerEpoch={each['producerEpoch']}, " in words
        assert f"transactionTimeoutMs={each['transactionTimeoutMs']}, " in words
        for topic in each["topics"]:
            assert all(f"{topic['topic']}-{number}" in words for number in topic["partitions"])


def test_producers(client: RawClient, live: Live) -> None:
    topics = [
        {"name": topic, "partitionIndexes": numbers}
        for topic, numbers in by_topic(list(live["producers"])).items()
    ]
    answer = client.ask("DescribeProducers", topics=topics)
    found = {
        f"{topic['name']}-{each['partitionIndex']}": {
            (state["producerId"], state["producerEpoch"], state["lastSequence"])
            for state in each["activeProducers"]
        }
        for topic in answer["topics"]
        for each in topic["partitions"]
    }
    state = re.compile(r"producerId=(\d+), producerEpoch=(\d+), lastSequence=(-?\d+)")
    # The broker had forgotten those whose records are older than a day.
    for name, states in live["producers"].items():
        assert {tuple(map(int, state.findall(each)[0])) for each in states} <= found[name], name


def test_configs_that_were_set(client: RawClient, live: Live) -> None:
    expected = live["topic_configs_not_default"]
    resources = [
        {"resourceType": 2, "resourceName": name, "configurationKeys": None} for name in expected
    ]
    answer = client.ask("DescribeConfigs", resources=resources)
    for each in answer["results"]:
        # The Admin client also lists what the broker sets for all topics.
        own = {config["name"]: config["value"] for config in each["configs"]}
        assert own.items() <= expected[each["resourceName"]].items()


def test_what_would_write_is_refused(client: RawClient) -> None:
    topic = {"name": "new", "numPartitions": 1, "replicationFactor": 1}
    topic |= {"assignments": [], "configs": []}
    created = client.ask("CreateTopics", topics=[topic], timeoutMs=1, validateOnly=False)
    data = [{"name": "shop.tx", "partitionData": [{"index": 0, "records": b""}]}]
    produced = client.ask("Produce", 9, acks=-1, timeoutMs=1, topicData=data)
    deleted = client.ask("DeleteTopics", 5, topicNames=["shop.tx"], timeoutMs=1)
    policy_violation = 44
    assert [
        created["topics"][0]["errorCode"],
        produced["responses"][0]["partitionResponses"][0]["errorCode"],
        deleted["responses"][0]["errorCode"],
    ] == [policy_violation] * 3
