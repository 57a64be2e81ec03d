"""The network layer: requests off a socket, responses onto it, log bytes by sendfile.

A request is framed as in Kafka: its size in four bytes, its header, its message. Requests of one
connection are answered one after another, as by a broker. The event loop moves bytes and waits;
what takes time is done in turns (protocol/turns.py), so that no client waits long for another one.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from struct import Struct
from typing import BinaryIO, NamedTuple

from kafkalog.errors import KafkaLogError
from kafkalog.log_lines import logger
from kafkalog.messages.message_reader import read_message
from kafkalog.messages.message_writer import Part
from kafkalog.messages.protocol import (
    API_VERSIONS,
    Api,
    RequestHead,
    apis,
    read_request_head,
    response_parts,
)
from kafkalog.messages.schema import Values
from kafkalog.server.answers.logs import fetched_bytes, has_errors
from kafkalog.server.answers.table import ANSWERS, FETCH, NEEDED, api_versions
from kafkalog.server.groups.coordinator import GroupCoordinator
from kafkalog.server.logs.file_ranges import FileRange, FileRanges, MemoryRange, open_plain
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.network.metrics import Metrics
from kafkalog.server.network.settings import Address, Limits, told_of_addresses
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.held_bytes import HeldBytes
from kafkalog.server.protocol.requests import RefusedRequestError, Request, Served, WaitingAnswer
from kafkalog.server.protocol.turns import Steps, Turns, one_step
from kafkalog.server.security.access import OPEN, Access
from kafkalog.server.security.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, SaslSession
from kafkalog.storage.files.files import InputFile

_logger = logger(__name__)

_SIZE = Struct(">i")
_ANY_HOST = ("0.0.0.0", "::")
# Connections that may come at once.
_BACKLOG = 1024
# What is copied at a time where the kernel cannot send a file: from a store, or with TLS.
_COPIED_BYTES = 1024 * 1024
_LONGEST_WAIT_SECONDS = 30.0
# What is taken off a socket at a time, and what is left there for a client that sends more.
_CHUNK_BYTES = 64 * 1024
_BUFFER_BYTES = 16 * 1024
# A request is read in the event loop if that takes no longer than to ask a thread for it.
_SMALL_BYTES = 1024


class _Peers(NamedTuple):
    """The host of a client, that to which it has connected, and the broker that it takes the server
    for on this connection, None if it has not said."""

    client_host: str
    served_host: str
    node: int | None = None


class _Response(NamedTuple):
    """A response's pieces, how long to wait before they are sent, and the broker that the client
    takes the server for from now on, None if it does not say."""

    parts: list[Part]
    wait_seconds: float = 0
    node: int | None = None


class Server:
    """Answers the clients of one address from one cluster. Use it in a running event loop."""

    def __init__(
        self,
        cluster: ServedCluster,
        address: Address,
        limits: Limits,
        metrics: Metrics,
        *,
        access: Access = OPEN,
        advertised: Address | None = None,
        with_groups: bool = True,
    ) -> None:
        """Responses send clients to `advertised`, by default to where they have connected.
        Without `with_groups` groups are described, and have no members."""
        self._cluster = cluster
        self._address = address
        self._limits = limits
        self._metrics = metrics
        self._access = access
        self._advertised = advertised
        self._turns = Turns()
        self._groups = GroupCoordinator(cluster, self._turns, takes_members=with_groups)
        self._waiting = self._groups.answers
        self._keys = frozenset((*ANSWERS, *self._waiting))
        self._connections: set[asyncio.Task[None]] = set()
        self._arriving = 0
        # A single request of the largest size has room.
        room = max(limits.max_in_flight_bytes, limits.max_request_bytes)
        self.in_flight = HeldBytes("requests", room)
        self.unsent = HeldBytes("responses", limits.max_unsent_bytes)
        self._large = asyncio.Semaphore(limits.max_large)
        self._listener: asyncio.Server | None = None
        self._port = address.port

    async def start(self) -> Address:
        """Listen, and return the address with the port that is used. Raises OptionError."""
        with told_of_addresses("--listen", self._address):
            self._listener = await asyncio.start_server(
                *(self._connected, self._address.host, self._address.port),
                backlog=_BACKLOG,
                limit=_BUFFER_BYTES,
            )
        for each in self._listener.sockets:
            # Connections inherit it: who sends more than is read has to wait.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _CHUNK_BYTES)
        self._port = self._listener.sockets[0].getsockname()[1]
        return Address(self._address.host, self._port)

    async def stop(self) -> None:
        """Close all connections; requests that are being answered get no answer."""
        if self._listener is not None:
            self._listener.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._groups.close()
        self._turns.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not self._has_room():
            self._metrics.refused_connections += 1
            writer.close()
            return
        self._connections.add(task)
        self._metrics.connections = len(self._connections)
        peer = writer.get_extra_info("peername") or ("unknown", 0)
        peers = _Peers(str(peer[0]), self._served_host(writer))
        connection = _Connection(self, reader, writer, f"{peer[0]}:{peer[1]}", peers, task)
        try:
            if not self._access.is_open:
                await self._let_in(connection)
            await connection.serve()
        except KafkaLogError as error:
            self._metrics.refused_requests += 1
            _logger.warning("%s: closed: %s", connection.name, error)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client has left, or takes nothing any more
        except RuntimeError:
            # asyncio says so where the client leaves between two pieces of a response.
            if not writer.transport.is_closing():
                raise
        except OSError as error:
            # A file that was deleted since its batches were found: the client asks again.
            _logger.warning("%s: closed: %s", connection.name, error)
        except asyncio.CancelledError:
            pass  # the server ends, or needs the memory for others
        finally:
            self.in_flight.clear(connection)
            self.unsent.clear(connection)
            self._connections.discard(task)
            self._metrics.connections = len(self._connections)
            writer.transport.abort()

    def _has_room(self) -> bool:
        limits = self._limits
        is_full = len(self._connections) >= limits.max_connections
        return not is_full and self._arriving < limits.max_arriving

    async def _let_in(self, connection: _Connection) -> None:
        """Wait until a client has said who it is. Raises what ends its connection."""
        self._arriving += 1
        try:
            async with asyncio.timeout(self._limits.arriving_seconds):
                await connection.let_in()
        finally:
            self._arriving -= 1

    def _served_host(self, writer: asyncio.StreamWriter) -> str:
        """Return the host that a client is to connect to."""
        if self._advertised is not None:
            return self._advertised.host
        # Who listens at all addresses is where the client has found it.
        is_any = self._address.host in _ANY_HOST
        own = writer.get_extra_info("sockname") if is_any else None
        return self._address.host if own is None else str(own[0])

    async def answer(self, request: Request) -> Values:
        """Return the answer to a request about groups or versions."""
        if request.api.key == API_VERSIONS:
            return api_versions(self._keys)
        return await self._waiting[request.api.key](request)

    async def respond(
        self, data: bytes, peers: _Peers, instead: WaitingAnswer | None = None
    ) -> _Response:
        """Return the response to a request, or what `instead` of this answers."""
        size = len(data)
        is_large = size > self._limits.large_bytes
        async with self._large if is_large else nullcontext():
            if size <= _SMALL_BYTES:
                asked = self._read_request(data, peers)
            else:
                reading = one_step(partial(self._read_request, data, peers))
                asked = await self._turns.run(reading, size)
            if isinstance(asked, _Response):
                return asked
            head, request = asked
            self._metrics.count(request.api.name)
            if request.api.key in ANSWERS and instead is None:
                for name in NEEDED.get(request.api.key, ()):
                    await self._needed(name)
                return await self._turns.run(self._steps(head, request), size)
        # Outside of the block: it may have to wait for other clients.
        values = await (instead or self.answer)(request)
        write = partial(response_parts, request.api, request.version, head.correlation_id, values)
        parts = await self._turns.run(one_step(write), size)
        return _Response(parts, node=await self._named_node(request))

    async def _named_node(self, request: Request) -> int | None:
        """Return the broker that a client names in ApiVersions, None if it names none there is.
        All have the same address, so this alone tells connections to them apart."""
        node = request.values.get("nodeId", -1) if request.api.key == API_VERSIONS else -1
        if node < 0:
            return None
        await self._needed("brokers")
        return node if node in self._cluster.brokers else None

    async def _needed(self, name: str) -> None:
        """Have the cluster read what an answer needs."""
        if name not in vars(self._cluster):
            await self._turns.once(name, lambda: getattr(self._cluster, name))

    def _steps(self, head: RequestHead, request: Request) -> Steps[_Response]:
        """Return the response to a request that reads files, in steps."""
        port = self._port if self._advertised is None else self._advertised.port
        served = Served(self._cluster, request.served_host, port)
        answered = ANSWERS[request.api.key](served, request)
        values: Values = answered if isinstance(answered, dict) else (yield from answered)
        parts = response_parts(request.api, request.version, head.correlation_id, values)
        if request.api.key != FETCH:
            return _Response(parts)
        self._metrics.fetched_bytes += (fetched := fetched_bytes(values))
        if fetched or has_errors(values):
            return _Response(parts)
        # Nothing will be written: the client asks again when it has waited.
        wait = min(request.values["maxWaitMs"] / 1000, _LONGEST_WAIT_SECONDS)
        return _Response(parts, max(wait, 0))

    def _read_request(self, data: bytes, peers: _Peers) -> tuple[RequestHead, Request] | _Response:
        """Return a request with its header. Raises RefusedRequestError for one that is not offered,
        CorruptDataError for what is none."""
        head = read_request_head(data)
        api, version = self.offered(head), head.api_version
        if version not in api.request.versions:
            if api.key != API_VERSIONS:
                raise RefusedRequestError(
                    f"{api.name} has versions {api.request.versions}, not {version}"
                )
            # The client does not know yet which versions it may ask for.
            offered = api_versions(self._keys, ErrorCode.UNSUPPORTED_VERSION)
            return _Response(response_parts(api, 0, head.correlation_id, offered))
        # As by brokers, bytes after the message are ignored: librdkafka sends some.
        most = None if len(data) <= _SMALL_BYTES else self._limits.max_request_values
        values, _ = read_message(api.request, version, data, head.end, most_values=most)
        return head, Request(api, version, values, head.client_id or "", *peers)

    def offered(self, head: RequestHead) -> Api:
        """Return the pair of messages that a header names. Raises RefusedRequestError."""
        api = apis().get(head.api_key)
        if api is None or (api.key not in self._keys and api.key != API_VERSIONS):
            name = "unknown" if api is None else api.name
            raise RefusedRequestError(
                f"request {head.api_key} ({name}) is not offered: this server only reads"
            )
        return api

    @property
    def access(self) -> Access:
        """Who may connect."""
        return self._access

    @property
    def limits(self) -> Limits:
        """What clients may ask for."""
        return self._limits

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        return self._metrics


class _Connection:
    """One client."""

    def __init__(
        self,
        server: Server,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        name: str,
        peers: _Peers,
        task: asyncio.Task[None],
    ) -> None:
        """`task` serves the connection, and ends with it."""
        self.name = name
        self._server = server
        self._reader = reader
        self._writer = writer
        self._peers = peers
        self._task = task
        self._is_encrypted = False

    def drop(self) -> None:
        """End the connection: others need the memory."""
        self._server.metrics.refused_requests += 1
        self._task.cancel()

    async def let_in(self) -> None:
        """Begin TLS, and have the client say who it is. Raises what ends the connection."""
        access, limits = self._server.access, self._server.limits
        if access.tls is not None:
            # First of all: what the client has sent must not be read before.
            try:
                await self._writer.start_tls(access.tls)
            except ssl.SSLError as error:
                raise RefusedRequestError(f"TLS: {error.reason or error}") from None
            self._is_encrypted = True
        if access.users is None:
            return
        session = SaslSession(access.users)
        while not session.is_authenticated:
            await self._answer_next(limits.max_arriving_bytes, partial(self._greeted, session))
            if session.failure is not None:
                raise RefusedRequestError(session.failure)

    async def _greeted(self, session: SaslSession, data: bytes) -> _Response:
        """Return the response to a request of a client that has not yet said who it is."""
        if session.is_bare:
            response = _Response([session.answer(data)])
        else:
            authenticate = partial(self._authentication, session)
            response = await self._server.respond(data, self._peers, authenticate)
        if session.failure is not None:
            self._server.metrics.failed_authentications += 1
            await asyncio.sleep(self._server.limits.failure_delay_seconds)
            if session.is_bare:
                # An empty answer would mean success.
                raise RefusedRequestError(session.failure)
        return response

    async def _authentication(self, session: SaslSession, request: Request) -> Values:
        key = request.api.key
        if key == SASL_HANDSHAKE:
            return session.handshake(request)
        if key == SASL_AUTHENTICATE:
            return session.authenticate(request)
        if key == API_VERSIONS:
            return await self._server.answer(request)
        raise RefusedRequestError(f"{request.api.name} before authentication")

    async def serve(self) -> None:
        """Answer requests until the client goes. Raises what ends the connection."""
        while True:
            await self._answer_next(self._server.limits.max_request_bytes, self._response)

    async def _response(self, data: bytes) -> _Response:
        return await self._server.respond(data, self._peers)

    async def _answer_next(
        self, max_bytes: int, respond: Callable[[bytes], Awaitable[_Response]]
    ) -> None:
        """Answer the next request. Raises RefusedRequestError for one of more than `max_bytes`."""
        wait = asyncio.wait_for(
            self._reader.readexactly(_SIZE.size), self._server.limits.idle_seconds
        )
        (size,) = _SIZE.unpack(await wait)
        if not 0 <= size <= max_bytes:
            raise RefusedRequestError(f"a request of {size} bytes, allowed are {max_bytes}")
        response = await respond(
            await asyncio.wait_for(self._arrived(size), self._server.limits.send_seconds)
        )
        if response.node is not None:
            self._peers = self._peers._replace(node=response.node)
        self._server.in_flight.clear(self)
        await asyncio.sleep(response.wait_seconds)
        await self._send(response.parts)

    async def _arrived(self, size: int) -> bytes:
        """Return the bytes of a request. Bytes count when they are there, not when announced."""
        chunks: list[bytes] = []
        while size:
            chunk = await self._reader.read(min(size, _CHUNK_BYTES))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", size)
            self._server.in_flight.add(self, len(chunk))
            chunks.append(chunk)
            size -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _send(self, parts: list[Part]) -> None:
        size = sum(map(len, parts))
        self._server.metrics.sent_bytes += size
        self._server.unsent.add(self, sum(map(_bytes_in_memory, parts)))
        self._writer.write(_SIZE.pack(size))
        for part in parts:
            if isinstance(part, bytes):
                self._writer.write(part)
                await self._taken(self._writer.drain())
            elif isinstance(part, FileRanges):
                for each in part.ranges:
                    if isinstance(each, MemoryRange):
                        self._writer.write(each.data)
                        await self._taken(self._writer.drain())
                    else:
                        await self._send_range(each)
        self._server.unsent.clear(self)

    async def _send_range(self, each: FileRange) -> None:
        if each.is_plain and not self._is_encrypted:
            with open_plain(each.path) as file:
                await self._send_file(file, each)
            return
        loop = asyncio.get_running_loop()
        with await loop.run_in_executor(None, lambda: InputFile(each.path)) as stored:
            for position in range(each.position, each.end, _COPIED_BYTES):
                count = min(_COPIED_BYTES, each.end - position)
                data = await loop.run_in_executor(None, stored.read, position, count)
                self._writer.write(data)
                await self._taken(self._writer.drain())

    async def _send_file(self, file: BinaryIO, each: FileRange) -> None:
        loop = asyncio.get_running_loop()
        sending = loop.sendfile(self._writer.transport, file, each.position, each.size)
        sent = await self._taken(sending)
        if sent != each.size:
            raise RefusedRequestError(f"{each.path} became shorter while it was sent")

    async def _taken(self, sending: Awaitable[int | None]) -> int | None:
        """Wait until the client has taken what is sent to it. Raises TimeoutError."""
        return await asyncio.wait_for(sending, self._server.limits.send_seconds)


def _bytes_in_memory(part: Part) -> int:
    return part.bytes_in_memory if isinstance(part, FileRanges) else len(part)
