"""The network layer: framing, limits, dropped connections."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog import OptionError, serve
from kafkalog.errors import LogDirError
from kafkalog.messages.protocol import Api, apis
from kafkalog.testing import LogDirectory
from tests.support.serve.raw_client import RawClient, raw_client, request_bytes
from tests.support.serve.sample_requests import ASKED, FETCH, SAMPLES

UNSUPPORTED_VERSION = 35


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = LogDirectory(tmp_path_factory.mktemp("logs") / "data")
    topic = directory.topic("orders")
    for number in range(200):
        topic.records([(None, f"order {number} " * 20)])
    return str(directory.write())


@pytest.fixture(scope="module")
def address(path: str) -> Iterator[str]:
    with serve(path) as running:
        yield running.bootstrap_servers


def answers(address: str) -> bool:
    """Whether the server still answers others."""
    with raw_client(address) as client:
        return bool(client.ask("Metadata", topics=None)["topics"])


def test_every_version_of_every_request_is_offered_as_it_is_defined(address: str) -> None:
    with raw_client(address) as client:
        offered = client.ask("ApiVersions", 0)["apiKeys"]
    produce = 0
    assert {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in offered} == {
        key: (0 if key == produce else api.request.versions.first, api.request.versions.last)
        for key, api in apis().items()
    }


@pytest.mark.parametrize("api", apis().values(), ids=lambda api: api.name)
def test_every_version_of_a_request_has_an_answer_of_that_version(address: str, api: Api) -> None:
    versions = api.request.versions
    with raw_client(address) as client:
        for version in range(versions.first, versions.last + 1):
            # The client reads the answer by the version's own definition, to its last byte.
            client.ask(api.name, version, **ASKED[api.name])


def test_all_that_a_group_has_committed_in_every_version(address: str) -> None:
    with raw_client(address) as client:
        committed = client.ask("OffsetCommit", 9, **ASKED["OffsetCommit"])
        assert committed["topics"][0]["partitions"][0]["errorCode"] == 0
        for version in range(2, 11):
            group = {"groupId": "g", "topics": None}
            answer = client.ask("OffsetFetch", version, **group, groups=[group])
            (topic,) = answer["topics"] if version < 8 else answer["groups"][0]["topics"]
            assert topic["partitions"][0]["committedOffset"] == 5


def test_what_a_group_commits_is_limited(address: str) -> None:
    partition = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": "x" * 4097}
    with raw_client(address) as client:
        topics = [{"name": "orders", "partitions": [partition]}]
        answer = client.ask("OffsetCommit", 9, groupId="limited", topics=topics)
        assert answer["topics"][0]["partitions"][0]["errorCode"] == 12


def test_an_unknown_version_of_apiversions_is_answered_with_version_0(address: str) -> None:
    with raw_client(address) as client:
        client.socket.sendall(struct.pack(">ihhih", 10, 18, 99, 7, -1))
        data = client.receive()
        correlation_id, error, count = struct.unpack_from(">ihi", data)
        assert (correlation_id, error) == (7, UNSUPPORTED_VERSION)
        assert len(data) == 10 + 6 * count
        # The same connection goes on with a version that is known.
        assert client.ask("ApiVersions", 0)["errorCode"] == 0


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 1 << 30),
        struct.pack(">i", -1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        struct.pack(">ihhih", 10, 4, 0, 1, -1),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 3, 0, 1, 500),
        struct.pack(">i", 3) + b"abc",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=[
        *("too large", "negative size", "unknown version", "of brokers only", "unknown request"),
        *("client id beyond the end", "no header", "HTTP"),
    ],
)
def test_what_is_no_request_ends_its_connection_and_no_other(address: str, data: bytes) -> None:
    with raw_client(address) as client:
        client.socket.sendall(data)
        assert client.receive() == b""
    assert answers(address)


def test_connections_that_drop_anywhere_harm_nobody(address: str) -> None:
    data = SAMPLES["Fetch"]
    host, _, port = address.rpartition(":")
    for size in range(len(data)):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(data[:size])
    assert answers(address)


def test_no_response_is_larger_than_asked_for(address: str) -> None:
    with raw_client(address) as client:
        topics = client.ask("Metadata", topics=None)["topics"]
        for limit in (1, 300, 1000, 5000):
            partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": limit}
            asked = [{"topicId": topics[0]["topicId"], "partitions": [partition]}]
            answer = client.ask("Fetch", **{**FETCH, "maxBytes": limit}, topics=asked)
            records = answer["responses"][0]["partitions"][0]["records"]
            first = 12 + struct.unpack_from(">i", records, 8)[0]
            # One batch comes whole, however large.
            assert len(records) <= max(limit, first)


def test_it_ends_within_a_second_though_clients_wait(path: str) -> None:
    with serve(path) as running:
        client = RawClient(running.bootstrap_servers)
        topic = client.ask("Metadata", topics=None)["topics"][0]["topicId"]
        partition = {"partition": 0, "fetchOffset": 200, "partitionMaxBytes": 1000}
        waiting = {**FETCH, "maxWaitMs": 30_000}
        asked = [{"topicId": topic, "partitions": [partition]}]
        data = request_bytes("Fetch", 13, {**waiting, "topics": asked}, 9)
        threading.Timer(0.2, lambda: client.socket.sendall(data)).run()
        time.sleep(0.2)
        started = time.monotonic()
    assert time.monotonic() - started < 1
    assert client.receive() == b""
    client.socket.close()


def test_two_servers_do_not_share_an_address(path: str, address: str) -> None:
    with pytest.raises(OptionError, match="Address already in use"), serve(path, listen=address):
        pass
    assert answers(address)


def test_other_hosts_are_not_let_in_without_a_word(path: str) -> None:
    with pytest.raises(OptionError, match="--insecure"), serve(path, listen="0.0.0.0:0"):
        pass
    with serve(path, listen="0.0.0.0:0", insecure=True) as running:
        assert answers(running.bootstrap_servers)


def test_paths_without_a_partition_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(LogDirError, match="no partition to serve"), serve(str(tmp_path)):
        pass


def test_partitions_that_are_not_among_the_files_have_no_leader(tmp_path: Path) -> None:
    # Clients take the number of partitions for the numbers that there are.
    directory = LogDirectory(tmp_path / "data")
    directory.topic("orders", partitions=3).records([(None, "only")], partition=2)
    one = Path(directory.write()) / "orders-2"
    with serve(str(one)) as running, raw_client(running.bootstrap_servers) as client:
        (topic,) = client.ask("Metadata", topics=None)["topics"]
        described = client.ask(
            "DescribeTopicPartitions", topics=[], responsePartitionLimit=9, cursor=None
        )
    leader_not_available = 5
    for partitions in (topic["partitions"], described["topics"][0]["partitions"]):
        assert [
            (each["partitionIndex"], each["errorCode"], each["leaderId"]) for each in partitions
        ] == [(0, leader_not_available, -1), (1, leader_not_available, -1), (2, 0, 1)]
