"""`kafkalog serve` as a process: its start, its memory, its connections and its end."""

import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.free_ports import free_ports
from tests.support.serve.raw_client import RawClient, raw_client, request_bytes
from tests.support.serve.served_process import served_process

SHOP = "examples/shop-week"
ANY_PORT = ("--listen", "127.0.0.1:0")
JOIN_GROUP = 11


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_it_takes_less_than_150_mib(tmp_path: Path) -> None:
    with served_process(SHOP, tmp_path / "ready", *ANY_PORT, "--no-groups") as served:
        with raw_client(served.address) as client:
            assert len(client.ask("Metadata", topics=None)["topics"]) == 3
            offered = {each["apiKey"] for each in client.ask("ApiVersions", 0)["apiKeys"]}
        assert served.resident_mib < 150
        # LLVM comes with the first kernel, when a client reads.
        assert "llvm" not in Path(f"/proc/{served.process.pid}/maps").read_text()
    assert JOIN_GROUP not in offered


def test_1000_connections_may_be_idle(tmp_path: Path, many_files: None) -> None:
    # The limit that shells set counts for little: the process raises it, as Java does.
    ready = tmp_path / "ready"
    with (
        served_process(SHOP, ready, *ANY_PORT, open_files=256) as served,
        ExitStack() as open_until_end,
    ):
        host, _, port = served.address.rpartition(":")
        for _ in range(1000):
            open_until_end.enter_context(socket.create_connection((host, int(port)), 30))
        with raw_client(served.address) as client:
            assert client.ask("Metadata", topics=None)["topics"]


def test_ctrl_c_ends_it_within_a_second_though_a_client_waits(tmp_path: Path) -> None:
    with served_process(SHOP, tmp_path / "ready", *ANY_PORT) as served:
        client = RawClient(served.address)
        topics = client.ask("Metadata", topics=[{"name": "customers"}])["topics"]
        asked = {"name": "customers", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}
        found = client.ask("ListOffsets", 6, replicaId=-1, topics=[asked])
        end = found["topics"][0]["partitions"][0]["offset"]
        partition = {"partition": 0, "fetchOffset": end, "partitionMaxBytes": 1000}
        waiting = {
            "maxWaitMs": 30_000,
            "minBytes": 1,
            "maxBytes": 1000,
            "sessionEpoch": -1,
            "topics": [{"topicId": topics[0]["topicId"], "partitions": [partition]}],
        }
        client.socket.sendall(request_bytes("Fetch", 13, waiting, 9))
        time.sleep(0.5)
        started = time.monotonic()
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(10) == 130
        assert time.monotonic() - started < 1
        assert client.receive() == b""
        client.socket.close()


@pytest.mark.deep
def test_after_kill_9_it_answers_again_within_2_seconds(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    listen = ("--listen", f"127.0.0.1:{port}")
    with (
        served_process(SHOP, tmp_path / "ready", *listen) as first,
        raw_client(first.address) as cut_off,
    ):
        assert cut_off.ask("ApiVersions", 0)["errorCode"] == 0
        first.process.kill()
        # The connection that the client has not closed does not keep the port.
        with (
            served_process(SHOP, tmp_path / "ready", *listen) as second,
            raw_client(second.address) as client,
        ):
            assert client.ask("Metadata", topics=None)["topics"]
            # By the clock on an idle machine; other tests may run beside this one.
            assert second.processor_seconds < 2


@pytest.mark.deep
def test_10000_partitions_are_listed_in_2_seconds_of_the_processor(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for topic in range(100):
        for partition in range(100):
            directory = data / f"topic{topic}-{partition}"
            directory.mkdir(parents=True)
            (directory / f"{0:020}.log").touch()
    with (
        served_process(str(data), tmp_path / "ready", *ANY_PORT) as served,
        raw_client(served.address) as client,
    ):
        topics = client.ask("Metadata", topics=None)["topics"]
        assert served.processor_seconds < 2
    assert sum(len(topic["partitions"]) for topic in topics) == 10_000
