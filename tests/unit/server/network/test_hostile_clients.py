"""What one client asks for does not keep others from their answers, nor fill the memory."""

import asyncio
import logging
import shutil
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from kafkalog import serve
from kafkalog.inspection.logs.log_offsets import TimedOffset
from kafkalog.server.groups import committed_offsets, known_groups
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.logs.served_log import ServedLog
from kafkalog.server.network.serving import ServeRequest, run
from kafkalog.server.network.settings import Address, Limits
from kafkalog.testing import LogDirectory
from tests.support.serve.raw_client import RawClient, raw_client, request_bytes

INVALID_REQUEST, UNKNOWN_MEMBER_ID, INVALID_COMMIT_OFFSET_SIZE = 42, 25, 28
MEMBER_ID_REQUIRED, INVALID_REGULAR_EXPRESSION = 79, 128
PARTITIONS = 50
WITHIN_SECONDS = 60
# A sequence that clears a terminal, in an expression that has no end.
COMMANDS = "\x1b[2J("


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = LogDirectory(tmp_path_factory.mktemp("logs") / "data")
    topic = directory.topic("orders", partitions=PARTITIONS)
    for number in range(PARTITIONS):
        topic.records([(None, b"x" * 300_000)] * 2, partition=number)
    return str(directory.write())


@pytest.fixture
def address(path: str) -> Iterator[str]:
    with serve(path) as running:
        yield running.bootstrap_servers


def gets_answers(address: str) -> bool:
    """Whether another client gets an answer."""
    with raw_client(address) as client:
        return bool(client.ask("Metadata", topics=[{"name": "orders"}])["topics"])


def offsets_asked(partitions: Any, timestamp: int = 0) -> dict[str, Any]:
    asked = [{"partitionIndex": each, "timestamp": timestamp} for each in partitions]
    return {"replicaId": -1, "topics": [{"name": "orders", "partitions": asked}]}


def is_answered(client: RawClient) -> bool:
    """Whether the client has an answer, or its connection is closed."""
    client.socket.setblocking(False)
    try:
        client.socket.recv(1, socket.MSG_PEEK)
        return True
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(WITHIN_SECONDS)


def with_server(path: str, limits: Limits, ask: Callable[[Address], Awaitable[None]]) -> None:
    """Call a function while a server with these limits runs."""

    async def serve_and_ask() -> None:
        stop, found = asyncio.Event(), asyncio.get_running_loop().create_future()
        request = ServeRequest(ServedCluster([path]), Address("127.0.0.1", 0), limits)
        serving = asyncio.create_task(run(request, found.set_result, stop))
        try:
            await asyncio.wait_for(ask(await found), WITHIN_SECONDS)
        finally:
            stop.set()
            await serving

    asyncio.run(serve_and_ask())


async def has_ended(reader: asyncio.StreamReader) -> bool:
    """Wait for the end of a connection without an answer; what the server has not read makes it a
    reset."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def test_bytes_that_are_only_announced_take_no_room(address: str) -> None:
    limits = Limits()
    connections = 2 * limits.max_in_flight_bytes // limits.max_request_bytes
    host, _, port = address.rpartition(":")
    with ExitStack() as open_until_end:
        for _ in range(connections):
            slow = open_until_end.enter_context(socket.create_connection((host, int(port))))
            slow.sendall(struct.pack(">i", limits.max_request_bytes) + b"\0")
        assert gets_answers(address)


def test_where_there_is_no_room_the_one_who_has_sent_most_is_disconnected(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(address: Address) -> None:
        async def begin(size: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(struct.pack(">i", 1_000_000) + bytes(size))
            await writer.drain()
            return reader, writer

        greedy, greedy_writer = await begin(900_000)
        slow, slow_writer = await begin(60_000)
        other, other_writer = await begin(300_000)
        assert await has_ended(greedy)
        # The others go on.
        request = request_bytes("Metadata", 9, {"topics": None}, 4)
        third, third_writer = await asyncio.open_connection(address.host, address.port)
        third_writer.write(request)
        assert await third.readexactly(4)
        assert not slow.at_eof() and not other.at_eof()
        for each in (greedy_writer, slow_writer, other_writer, third_writer):
            each.close()

    with_server(path, Limits(max_in_flight_bytes=1_100_000, max_request_bytes=1_000_000), ask)
    assert "bytes of requests are the most of all" in caplog.text


def test_a_client_that_takes_no_answer_is_disconnected_where_there_is_no_room(path: str) -> None:
    async def ask(address: Address) -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        names = [{"name": f"{number:0200}"} for number in range(1000)]
        writer.write(request_bytes("Metadata", 9, {"topics": names}, 1))
        assert await reader.read() == b""
        writer.close()
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request_bytes("Metadata", 9, {"topics": names[:10]}, 1))
        assert await reader.readexactly(4)
        writer.close()

    with_server(path, Limits(max_unsent_bytes=100_000), ask)


@pytest.mark.parametrize(
    ("name", "version", "values"),
    [
        ("Metadata", 8, {"topics": [{"name": ""}] * 300_000}),
        ("Fetch", 12, {"topics": [{"topic": "", "partitions": []}] * 300_000}),
        ("DescribeGroups", 5, {"groups": [""] * 300_000}),
        ("DescribeLogDirs", 4, {"topics": [{"topic": "t", "partitions": [0] * 300_000}]}),
        ("SyncGroup", 5, {"assignments": [{"memberId": "", "assignment": b""}] * 300_000}),
        ("JoinGroup", 9, {"protocols": [{"name": "", "metadata": b""}] * 300_000}),
    ],
)
def test_a_request_of_too_many_values_is_refused(
    address: str, caplog: pytest.LogCaptureFixture, name: str, version: int, values: dict[str, Any]
) -> None:
    with raw_client(address) as client:
        client.socket.sendall(request_bytes(name, version, values, 1))
        assert client.receive() == b""
    assert "more than 250000 values in arrays" in caplog.text
    assert gets_answers(address)


def test_tagged_fields_count_as_values(address: str, caplog: pytest.LogCaptureFixture) -> None:
    data = request_bytes("Metadata", 9, {"topics": []}, 1)[4:-1]
    # Their number as a variable-length integer, then tag and size of each.
    data += bytes((0xE0, 0xA7, 0x12)) + bytes(2 * 300_000)
    with raw_client(address) as client:
        client.socket.sendall(struct.pack(">i", len(data)) + data)
        assert client.receive() == b""
    assert "more than 250000 values in arrays" in caplog.text


def test_an_offset_of_a_partition_that_is_asked_for_twice_is_refused_once(address: str) -> None:
    # ReplicaManager.fetchOffset answers so: one entry for the partition, with INVALID_REQUEST.
    asked = offsets_asked([0, 1, 0, 0])
    asked["topics"] = asked["topics"] * 2
    with raw_client(address) as client:
        (topic,) = client.ask("ListOffsets", 6, **asked)["topics"]
        (once,) = client.ask("ListOffsets", 6, **offsets_asked([2]))["topics"]
    assert [(each["partitionIndex"], each["errorCode"]) for each in topic["partitions"]] == [
        (0, INVALID_REQUEST),
        (1, INVALID_REQUEST),
    ]
    assert [each["errorCode"] for each in once["partitions"]] == [0]


def test_a_repeated_partition_is_fetched_once_as_it_is_asked_for_last(address: str) -> None:
    # As FetchRequest.fetchData has it: a map, whose keys stay where they came first.
    asked = [
        {"partition": number, "fetchOffset": offset, "partitionMaxBytes": 100}
        for number, offset in ((0, 7), (1, 0), (0, 1))
    ]
    values = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 10_000_000, "isolationLevel": 0}
    with raw_client(address) as client:
        answer = client.ask(
            "Fetch", 12, **values, topics=[{"topic": "orders", "partitions": asked}]
        )
    (topic,) = answer["responses"]
    assert [(each["partitionIndex"], each["errorCode"]) for each in topic["partitions"]] == [
        (0, 0),
        (1, 0),
    ]


@pytest.mark.parametrize(
    ("name", "version", "values", "listed"),
    [
        ("Metadata", 9, {"topics": [{"name": "orders"}] * 3}, "topics"),
        ("DescribeGroups", 5, {"groups": ["g"] * 3}, "groups"),
        ("ConsumerGroupDescribe", 0, {"groupIds": ["g"] * 3}, "groups"),
        ("ShareGroupDescribe", 1, {"groupIds": ["g"] * 3}, "groups"),
        ("DescribeTransactions", 0, {"transactionalIds": ["t"] * 3}, "transactionStates"),
        ("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}] * 3}, "groups"),
        (
            "DescribeConfigs",
            4,
            {
                "resources": [
                    {"resourceType": 2, "resourceName": "orders", "configurationKeys": None}
                ]
                * 3
            },
            "results",
        ),
        (
            "DescribeProducers",
            0,
            {"topics": [{"name": "orders", "partitionIndexes": [0, 0, 0]}] * 3},
            "topics",
        ),
    ],
)
def test_what_is_asked_for_three_times_is_answered_once(
    address: str, name: str, version: int, values: dict[str, Any], listed: str
) -> None:
    with raw_client(address) as client:
        (found,) = client.ask(name, version, **values)[listed]
    assert len(found.get("partitions", ())) == {"Metadata": PARTITIONS, "DescribeProducers": 1}.get(
        name, 0
    )


def test_a_filter_of_quotas_names_a_type_of_entity_once(address: str) -> None:
    component = {"entityType": "user", "matchType": 0, "match": "alice"}
    with raw_client(address) as client:
        answer = client.ask("DescribeClientQuotas", components=[component] * 2, strict=False)
    assert (answer["errorCode"], answer["entries"]) == (INVALID_REQUEST, None)
    assert "cannot appear more than once" in answer["errorMessage"]


def test_a_small_request_overtakes_a_large_one(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The large one takes until the small one has its answer, or gives up after 50 s."""
    has_begun, is_answered_now = threading.Event(), threading.Event()

    def slowly(log: ServedLog, timestamp_ms: int) -> TimedOffset | None:
        has_begun.set()
        is_answered_now.wait(1)
        return None

    monkeypatch.setattr(ServedLog, "offset_for_time", slowly)
    with raw_client(address) as large, raw_client(address) as small:
        data = request_bytes("ListOffsets", 6, offsets_asked(range(PARTITIONS)), 1)
        large.socket.sendall(data)
        assert has_begun.wait(WITHIN_SECONDS)
        for _ in range(20):
            assert small.ask("Metadata", topics=[{"name": "orders"}])["topics"]
        assert small.ask("ListOffsets", 6, **offsets_asked([0], -1))["topics"]
        assert not is_answered(large)
        is_answered_now.set()
        assert large.receive()


def test_a_partition_that_takes_long_to_read_delays_only_those_who_ask_for_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, is_read = threading.Event(), threading.Event()

    def of_a_slow_disk(log: ServedLog, timestamp_ms: int) -> TimedOffset | None:
        if log.partition == 0:
            has_begun.set()
            is_read.wait(WITHIN_SECONDS)
        return TimedOffset(0, timestamp_ms)

    monkeypatch.setattr(ServedLog, "offset_for_time", of_a_slow_disk)
    with ExitStack() as open_until_end:
        waiting = [open_until_end.enter_context(raw_client(address)) for _ in range(40)]
        for each in waiting:
            each.socket.sendall(request_bytes("ListOffsets", 6, offsets_asked([0]), 1))
        assert has_begun.wait(WITHIN_SECONDS)
        with raw_client(address) as other:
            found = other.ask("ListOffsets", 6, **offsets_asked(range(1, 5)))
        assert [each["offset"] for each in found["topics"][0]["partitions"]] == [0] * 4
        assert not any(map(is_answered, waiting))
        is_read.set()
        assert all(each.receive() for each in waiting)


def joined(client: RawClient, group: str, metadata: bytes) -> tuple[str, int]:
    """The member id and the generation of a client that has joined a group of its own."""
    asked: dict[str, Any] = {"groupId": group, "sessionTimeoutMs": 60_000, "memberId": ""}
    asked |= {"rebalanceTimeoutMs": 60_000, "protocolType": "consumer"}
    asked["protocols"] = [{"name": "range", "metadata": metadata}]
    answer = client.ask("JoinGroup", 5, **asked)
    assert answer["errorCode"] == MEMBER_ID_REQUIRED
    answer = client.ask("JoinGroup", 5, **{**asked, "memberId": answer["memberId"]})
    assert answer["errorCode"] == 0
    return answer["memberId"], answer["generationId"]


def test_of_all_members_the_one_that_takes_most_memory_has_to_go(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(known_groups, "_MOST_MEMBER_BYTES", 100_000)

    def beats(client: RawClient, group: str, member: tuple[str, int]) -> int:
        beat: dict[str, Any] = {"groupId": group, "memberId": member[0], "generationId": member[1]}
        error: int = client.ask("Heartbeat", **beat)["errorCode"]
        return error

    with serve(path) as running, raw_client(running.bootstrap_servers) as client:
        large = joined(client, "large", b"x" * 60_000)
        small = joined(client, "small", b"x" * 20_000)
        assert beats(client, "large", large) == 0
        other = joined(client, "other", b"x" * 20_000)
        assert beats(client, "large", large) == UNKNOWN_MEMBER_ID
        assert beats(client, "small", small) == beats(client, "other", other) == 0
        # Who takes more than all may have ends its connection.
        with raw_client(running.bootstrap_servers) as greedy, pytest.raises(struct.error):
            joined(greedy, "greedy", b"x" * 100_000)
        assert beats(client, "small", small) == 0
    assert "bytes of group members are the most of all" in caplog.text


def test_names_and_expressions_of_members_take_memory_too(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_groups, "_MOST_MEMBER_BYTES", 200_000)
    names = [f"{number:0100}" for number in range(200)]
    with serve(path) as running, raw_client(running.bootstrap_servers) as client:
        asked: dict[str, Any] = {"groupId": "g", "memberEpoch": 0}
        first = client.ask("ConsumerGroupHeartbeat", **asked, subscribedTopicNames=names)
        assert first["errorCode"] == 0
        large = client.ask("ConsumerGroupHeartbeat", **asked, subscribedTopicNames=names * 2)
        assert large["errorCode"] == 0
        with raw_client(running.bootstrap_servers) as greedy:
            data = {**asked, "subscribedTopicNames": [f"{number:0999}" for number in range(200)]}
            greedy.socket.sendall(request_bytes("ConsumerGroupHeartbeat", 1, data, 1))
            assert greedy.receive() == b""
        beat: dict[str, Any] = {
            **asked,
            "memberId": first["memberId"],
            "memberEpoch": first["memberEpoch"],
        }
        assert client.ask("ConsumerGroupHeartbeat", **beat)["errorCode"] == 0


def test_what_groups_commit_is_limited_in_all(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "_MOST_COMMIT_BYTES", 20_000)
    partitions = [
        {"partitionIndex": number, "committedOffset": 1, "committedMetadata": "x" * 4000}
        for number in range(10)
    ]
    with serve(path) as running, raw_client(running.bootstrap_servers) as client:
        for _ in range(3):  # to commit again takes no more
            topics = [{"name": "orders", "partitions": partitions}]
            (answer,) = client.ask("OffsetCommit", 9, groupId="g", topics=topics)["topics"]
            errors = [each["errorCode"] for each in answer["partitions"]]
            assert errors == [0] * 4 + [INVALID_COMMIT_OFFSET_SIZE] * 6


def test_groups_without_members_make_room_for_others(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_groups, "MOST_LIVE_GROUPS", 3)
    with serve(path) as running, raw_client(running.bootstrap_servers) as client:
        joined(client, "with a member", b"")
        refused = {"sessionTimeoutMs": 0, "memberId": "", "protocolType": "consumer"}
        for number in range(10):
            client.ask("JoinGroup", 5, groupId=f"g{number}", **refused, protocols=[])
        joined(client, "late", b"")
        listed = {each["groupId"] for each in client.ask("ListGroups")["groups"]}
    assert {"with a member", "late"} <= listed
    assert len(listed) == 3


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ListTransactions", {"transactionalIdPattern": COMMANDS}),
        (
            "ConsumerGroupHeartbeat",
            {"groupId": "g", "memberEpoch": 0, "subscribedTopicRegex": COMMANDS},
        ),
    ],
)
def test_no_expression_of_a_client_reaches_the_terminal(
    address: str, capfd: pytest.CaptureFixture[str], name: str, values: dict[str, Any]
) -> None:
    with raw_client(address) as client:
        assert client.ask(name, **values)["errorCode"] == INVALID_REGULAR_EXPRESSION
    # RE2 writes to the process's stderr itself.
    assert "\x1b" not in capfd.readouterr().err


def test_a_client_that_leaves_while_it_is_answered_leaves_no_traceback(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = [
        {"partition": number, "fetchOffset": 0, "partitionMaxBytes": 1_000_000}
        for number in range(PARTITIONS)
    ]
    values = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 50_000_000, "isolationLevel": 0}
    topics = [{"topic": "orders", "partitions": asked}]
    data = request_bytes("Fetch", 12, {**values, "topics": topics}, 1)
    for number in range(30):
        with closing(RawClient(address).socket) as client:
            client.sendall(data)
            client.recv(1 + number * 1000)
            # What is not read any more is answered with a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert gets_answers(address)
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.fixture
def two_brokers(tmp_path: Path) -> list[str]:
    """Log directories of two brokers; each has another partition of the offsets topic."""
    paths = []
    for node in (1, 2):
        directory = LogDirectory(tmp_path / f"{node}", node_id=node, offsets_topic_partitions=2)
        directory.topic(f"of-{node}").records([(None, "x")])
        for number in range(20):
            directory.commit_offsets(f"group-{number}", {("of-1", 0): 1})
        paths.append(directory.write())
        shutil.rmtree(tmp_path / f"{node}" / f"__consumer_offsets-{2 - node}")
    return paths


def test_brokers_list_their_own_groups_and_directories_to_clients_that_say_whom_they_ask(
    two_brokers: list[str],
) -> None:
    groups: dict[int, list[str]] = {}
    directories: dict[int, list[str]] = {}
    with serve(two_brokers) as running:
        for node in (1, 2):
            with raw_client(running.bootstrap_servers) as client:
                client.ask("ApiVersions", 5, clusterId="kafkalog-testing", nodeId=node)
                groups[node] = [each["groupId"] for each in client.ask("ListGroups")["groups"]]
                found = client.ask("DescribeLogDirs", topics=None)["results"]
                directories[node] = [each["logDir"] for each in found]
        with raw_client(running.bootstrap_servers) as client:
            # Older clients do not say; nor do tools that have just begun.
            client.ask("ApiVersions", 5, clusterId=None, nodeId=-1)
            every = [each["groupId"] for each in client.ask("ListGroups")["groups"]]
            coordinators = client.ask("FindCoordinator", coordinatorKeys=every)["coordinators"]
    assert sorted(every) == sorted(f"group-{number}" for number in range(20))
    assert sorted(groups[1] + groups[2]) == sorted(every)
    assert {each["key"]: each["nodeId"] for each in coordinators} == {
        group: node for node, listed in groups.items() for group in listed
    }
    assert all(groups.values())
    assert directories == {1: [two_brokers[0]], 2: [two_brokers[1]]}
