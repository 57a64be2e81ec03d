"""Who has not said who it is: what it may ask, how long it may take, how many may wait."""

import asyncio
import logging
import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog import OptionError, serve
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.network.serving import ServeRequest, run
from kafkalog.server.network.settings import Address, Limits
from kafkalog.server.security.access import Access
from kafkalog.server.security.users import Users
from kafkalog.testing import LogDirectory
from tests.support.serve.certificates import encrypt_key, self_signed
from tests.support.serve.raw_client import RawClient, raw_client, request_bytes

USERS = {"alice": "a secret"}
TOKEN = b"\0alice\0a secret"
WRONG = b"\0alice\0another secret"
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 33, 34, 58
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = LogDirectory(tmp_path_factory.mktemp("logs") / "data")
    directory.topic("orders").records([(None, "order")])
    return str(directory.write())


@pytest.fixture(scope="module")
def address(path: str) -> Iterator[str]:
    with serve(path, users=USERS) as running:
        yield running.bootstrap_servers


def admitted(client: RawClient) -> bool:
    """Whether a client gets answers to requests other than those about itself."""
    return bool(client.ask("Metadata", topics=None)["topics"])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_is_let_in_when_it_has_shown_its_password(address: str, version: int) -> None:
    with raw_client(address) as client:
        assert client.ask("ApiVersions", 3)["errorCode"] == 0
        greeted = client.ask("SaslHandshake", 1, mechanism="PLAIN")
        assert greeted == {"errorCode": 0, "mechanisms": MECHANISMS}
        assert client.ask("SaslAuthenticate", version, authBytes=TOKEN)["errorCode"] == 0
        assert admitted(client)
        # Once is enough.
        assert client.ask("SaslHandshake", 1, mechanism="PLAIN")["errorCode"] == ILLEGAL_STATE
        again = client.ask("SaslAuthenticate", version, authBytes=TOKEN)
        assert again["errorCode"] == ILLEGAL_STATE
        assert admitted(client)


def test_after_the_oldest_handshake_tokens_come_bare(address: str) -> None:
    with raw_client(address) as client:
        assert client.ask("SaslHandshake", 0, mechanism="PLAIN")["errorCode"] == 0
        client.socket.sendall(struct.pack(">i", len(TOKEN)) + TOKEN)
        assert client.receive() == b""
        assert admitted(client)
    with raw_client(address) as client:
        client.ask("SaslHandshake", 0, mechanism="PLAIN")
        client.socket.sendall(struct.pack(">i", len(WRONG)) + WRONG)
        assert client.socket.recv(1) == b""


def test_a_wrong_password_ends_the_connection_and_is_in_no_message(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = (
        *(WRONG, b"", b"\0\0", b"\0alice\0", b"\0carol\0a secret", b"bob\0alice\0a secret"),
        *(TOKEN + b"\0", b"\0\xff\0a secret"),
    )
    texts = []

    def ask(address: Address) -> None:
        for token in tokens:
            with raw_client(str(address)) as client:
                client.ask("SaslHandshake", 1, mechanism="PLAIN")
                answer = client.ask("SaslAuthenticate", authBytes=token)
                assert answer["errorCode"] == FAILED
                assert answer["authBytes"] == b""
                assert client.receive() == b""
                texts.append(answer["errorMessage"])

    limits = Limits(failure_delay_seconds=0)
    with_server(path, limits, lambda address: asyncio.to_thread(ask, address))
    texts += [record.getMessage() for record in caplog.records]
    assert len([text for text in texts if "closed: PLAIN: " in text]) == len(tokens)
    for secret in ("secret", "alice", "carol"):
        assert all(secret not in text for text in texts)


def test_what_is_not_offered_before_is_not_answered(address: str) -> None:
    asked: dict[str, dict[str, Any]] = {
        "Metadata": {"topics": None},
        "ListGroups": {},
        "Produce": {"acks": -1, "topicData": []},
    }
    for name, values in asked.items():
        with raw_client(address) as client:
            client.socket.sendall(request_bytes(name, 3, values, 1))
            assert client.receive() == b""
    with raw_client(address) as client:
        answer = client.ask("SaslHandshake", 1, mechanism="GSSAPI")
        assert answer == {"errorCode": UNSUPPORTED_MECHANISM, "mechanisms": MECHANISMS}
        assert client.receive() == b""
    with raw_client(address) as client:
        assert client.ask("SaslAuthenticate", authBytes=TOKEN)["errorCode"] == ILLEGAL_STATE
        assert client.receive() == b""
    with raw_client(address) as client:
        client.ask("SaslHandshake", 1, mechanism="PLAIN")
        # Who has begun with one mechanism cannot go on with another.
        assert client.ask("SaslHandshake", 1, mechanism="PLAIN")["errorCode"] == ILLEGAL_STATE
        assert client.receive() == b""


def test_large_requests_are_for_clients_that_are_known(address: str) -> None:
    with raw_client(address) as client:
        client.socket.sendall(struct.pack(">i", 64 * 1024 + 1))
        assert client.receive() == b""


@pytest.mark.parametrize("requests", [60, pytest.param(20_000, marks=pytest.mark.deep)])
def test_any_bytes_let_nobody_in(
    path: str, requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    first = b"n,,n=alice,r=abc"
    samples = [
        request_bytes("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-256"}, 1),
        request_bytes("SaslAuthenticate", 2, {"authBytes": first}, 2),
        request_bytes("SaslAuthenticate", 1, {"authBytes": b"c=biws,r=abc,p=AAAA"}, 3),
    ]
    chance = random.Random(17)

    async def ask(address: Address) -> None:
        asked = 0
        while asked < requests:
            reader, writer = await asyncio.open_connection(address.host, address.port)
            for sample in samples:
                data = bytearray(sample)
                for _ in range(chance.choice((0, 1, 2))):
                    data[chance.randrange(4, len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
                writer.write(data)
                asked += 1
            writer.write(request_bytes("Metadata", 9, {"topics": None}, 4))
            received = await asyncio.wait_for(reader.read(), 10)
            assert b"orders" not in received
            writer.close()

    with_server(path, Limits(failure_delay_seconds=0), ask)
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_those_who_say_nothing_are_few(path: str) -> None:
    async def ask(address: Address) -> None:
        silent = [await asyncio.open_connection(address.host, address.port) for _ in range(3)]
        refused, refused_writer = await asyncio.open_connection(address.host, address.port)
        assert await asyncio.wait_for(refused.read(), 30) == b""
        refused_writer.close()
        for reader, writer in silent:
            writer.write(struct.pack(">i", -1))
            assert await asyncio.wait_for(reader.read(), 30) == b""
            writer.close()
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request_bytes("ApiVersions", 3, {}, 1))
        assert await asyncio.wait_for(reader.readexactly(4), 30)
        writer.close()

    with_server(path, Limits(max_arriving=3), ask)


def test_those_who_say_nothing_do_not_stay(path: str) -> None:
    async def ask(address: Address) -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()

    with_server(path, Limits(arriving_seconds=0.1), ask)


def with_server(path: str, limits: Limits, ask: Callable[[Address], Awaitable[None]]) -> None:
    """Call a function while a server with these limits runs."""

    async def serve_and_ask() -> None:
        stop, found = asyncio.Event(), asyncio.get_running_loop().create_future()
        request = ServeRequest(
            ServedCluster([path]), Address("127.0.0.1", 0), limits, Access(users=Users(USERS))
        )
        serving = asyncio.create_task(run(request, found.set_result, stop))
        try:
            await ask(await found)
        finally:
            stop.set()
            await serving

    asyncio.run(serve_and_ask())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_with_tls_a_client_without_it_gets_nothing(path: str, certificate: tuple[str, str]) -> None:
    with serve(path, tls=certificate) as running:
        with raw_client(running.bootstrap_servers) as client:
            client.socket.sendall(request_bytes("ApiVersions", 3, {}, 1))
            try:
                received = client.socket.recv(100)
            except ConnectionResetError:
                received = b""
            # An alert of TLS at most.
            assert received[:1] in (b"", b"\x15")
        host, _, port = running.bootstrap_servers.rpartition(":")
        context = ssl.create_default_context(cafile=certificate[0])
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as encrypted,
        ):
            assert encrypted.version() == "TLSv1.3"
            encrypted.sendall(request_bytes("ApiVersions", 3, {}, 1))
            assert encrypted.recv(4) != b""


def test_other_hosts_may_connect_as_users_with_tls_alone(
    path: str, certificate: tuple[str, str]
) -> None:
    everywhere = "0.0.0.0:0"
    for given in ({}, {"users": USERS}, {"tls": certificate}):
        with (
            pytest.raises(OptionError, match="--insecure"),
            serve(path, listen=everywhere, **given),
        ):
            pass
    with serve(path, listen=everywhere, users=USERS, tls=certificate) as running:
        assert running.bootstrap_servers.startswith("0.0.0.0:")


def test_certificates_and_keys_that_do_not_fit_are_errors(
    path: str, certificate: tuple[str, str], tmp_path: Path
) -> None:
    chain, key = certificate
    other_key = self_signed(tmp_path)[1]
    for given, said in {
        (chain, other_key): "a certificate that it fits: KEY_VALUES_MISMATCH",
        (chain, chain): "chmod 600",
        (other_key, key): "a certificate that it fits",
        (str(tmp_path / "missing"), key): "a certificate in PEM form: No such file",
        (chain, str(tmp_path / "missing")): "a file that can be read: No such file",
    }.items():
        with pytest.raises(OptionError, match=said), serve(path, tls=given):
            pass
    locked = tmp_path / "locked.pem"
    encrypt_key(key, locked)
    # Nothing asks the terminal for its password.
    with pytest.raises(OptionError, match="not encrypted"), serve(path, tls=(chain, str(locked))):
        pass
