"""Requests that no client sends: other bytes, repeated elements, in pieces, and never complete."""

import logging
import random
from collections.abc import Iterator

import pytest

from kafkalog import serve
from kafkalog.testing import LogDirectory
from tests.support.serve.raw_client import RawClient, raw_client
from tests.support.serve.sample_requests import mutated, pieces, repeated


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = LogDirectory(tmp_path_factory.mktemp("logs") / "data")
    topic = directory.topic("orders")
    for number in range(200):
        topic.records([(None, f"order {number} " * 20)])
    with serve(str(directory.write())) as running:
        yield running.bootstrap_servers


def is_complete(data: bytes) -> bool:
    return int.from_bytes(data[:4]) == len(data) - 4


@pytest.mark.parametrize("requests", [500, pytest.param(100_000, marks=pytest.mark.deep)])
@pytest.mark.timeout(3600)
def test_any_bytes_get_an_answer_or_end_the_connection(
    address: str, requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(25)
    client: RawClient | None = None
    for _ in range(requests):
        if client is None:
            client = RawClient(address)
            client.socket.settimeout(10)
        client.socket.sendall(mutated(chance))
        if len(client.receive()) == 0:
            client.socket.close()
            client = None
    if client is not None:
        client.socket.close()
    with raw_client(address) as other:
        assert other.ask("Metadata", topics=None)["topics"]
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("requests", [60, pytest.param(3_000, marks=pytest.mark.deep)])
@pytest.mark.timeout(3600)
def test_another_client_has_its_answers_whatever_one_sends(
    address: str, requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The answers come between the pieces of a request, and while it is answered."""
    chance = random.Random(38)
    with raw_client(address) as other:
        for _ in range(requests):
            with raw_client(address) as client:
                data = chance.choice((mutated, repeated))(chance)
                for piece in pieces(chance, data):
                    client.socket.sendall(piece)
                    assert other.ask("Metadata", topics=[{"name": "orders"}])["topics"]
                # Half of them leave before they have an answer.
                if chance.random() < 0.5 and is_complete(data):
                    client.receive()
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
