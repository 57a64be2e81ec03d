"""The network layer: requests off a socket, responses onto it, log bytes by sendfile.

A request is framed as in Kafka: its size in four bytes, its header, its message. Requests of one
connection are answered one after another, as by a broker.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from struct import Struct
from typing import BinaryIO, TypeVar

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
from kafkalog.server.answers.table import ANSWERS, FETCH, api_versions
from kafkalog.server.groups.coordinator import GroupCoordinator
from kafkalog.server.groups.stored_groups import StoredGroups, stored_groups
from kafkalog.server.logs.file_ranges import FileRange, FileRanges, MemoryRange, open_plain
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.network.metrics import Metrics
from kafkalog.server.network.settings import Address, Limits, told_of_addresses
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import RefusedRequestError, Request, Served, WaitingAnswer
from kafkalog.server.security.access import OPEN, Access
from kafkalog.server.security.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, SaslSession
from kafkalog.storage.files.files import InputFile

_logger = logger(__name__)

_Read = TypeVar("_Read")
_SIZE = Struct(">i")
_ANY_HOST = ("0.0.0.0", "::")
# Connections that may come at once.
_BACKLOG = 1024
# What is copied at a time where the kernel cannot send a file: from a store, or with TLS.
_COPIED_BYTES = 1024 * 1024
_LONGEST_WAIT_SECONDS = 30.0


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
        self._groups = GroupCoordinator(cluster, self._read_groups, takes_members=with_groups)
        self._waiting = self._groups.answers
        self._keys = frozenset((*ANSWERS, *self._waiting))
        # All files are read in one thread.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="kafkalog-serve")
        self._connections: set[asyncio.Task[None]] = set()
        self._arriving = 0
        self._in_flight = _InFlight(limits.max_in_flight_bytes)
        self._listener: asyncio.Server | None = None
        self._port = address.port

    async def start(self) -> Address:
        """Listen, and return the address with the port that is used. Raises OptionError."""
        with told_of_addresses("--listen", self._address):
            self._listener = await asyncio.start_server(
                self._connected, self._address.host, self._address.port, backlog=_BACKLOG
            )
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
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _read(self, function: Callable[[], _Read]) -> _Read:
        """Return what a function returns that reads files."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, function)

    async def _read_groups(self) -> StoredGroups:
        cluster = self._cluster
        return await self._read(
            lambda: stored_groups(cluster.paths, cluster.logs, cluster.as_of_ms)
        )

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not self._has_room():
            self._metrics.refused_connections += 1
            writer.close()
            return
        self._connections.add(task)
        self._metrics.connections = len(self._connections)
        peer = writer.get_extra_info("peername") or ("unknown", 0)
        connection = _Connection(self, reader, writer, str(peer[0]), self._served_host(writer))
        try:
            if not self._access.is_open:
                await self._let_in(connection)
            await connection.serve()
        except KafkaLogError as error:
            self._metrics.refused_requests += 1
            _logger.warning("%s:%s: closed: %s", *peer[:2], error)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client has left, or takes nothing any more
        except OSError as error:
            # A file that was deleted since its batches were found: the client asks again.
            _logger.warning("%s:%s: closed: %s", *peer[:2], error)
        except asyncio.CancelledError:
            pass  # the server ends
        finally:
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
        """Return the answer to a request."""
        key = request.api.key
        if key == API_VERSIONS:
            return api_versions(self._keys)
        if key in self._waiting:
            return await self._waiting[key](request)
        port = self._port if self._advertised is None else self._advertised.port
        served = Served(self._cluster, request.served_host, port)
        answered = await self._read(lambda: ANSWERS[key](served, request))
        if key == FETCH:
            self._metrics.fetched_bytes += (fetched := fetched_bytes(answered))
            if not fetched and not has_errors(answered):
                # Nothing will be written: the client asks again when it has waited.
                wait = min(request.values["maxWaitMs"] / 1000, _LONGEST_WAIT_SECONDS)
                await asyncio.sleep(max(wait, 0))
        return answered

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
    def keys(self) -> frozenset[int]:
        """The keys of all requests that are answered."""
        return self._keys

    @property
    def access(self) -> Access:
        """Who may connect."""
        return self._access

    @property
    def limits(self) -> Limits:
        """What clients may ask for."""
        return self._limits

    @property
    def in_flight(self) -> _InFlight:
        """The bytes of all requests that are not answered yet."""
        return self._in_flight

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        return self._metrics


class _InFlight:
    """Bytes of requests in memory, up to a limit; who would exceed it waits."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._is_less = asyncio.Condition()

    async def take(self, size: int) -> None:
        async with self._is_less:
            await self._is_less.wait_for(lambda: self._bytes + size <= self._limit)
            self._bytes += size

    async def give_back(self, size: int) -> None:
        async with self._is_less:
            self._bytes -= size
            self._is_less.notify_all()


class _Connection:
    """One client."""

    def __init__(
        self,
        server: Server,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client_host: str,
        served_host: str,
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._hosts = client_host, served_host
        self._is_encrypted = False

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

    async def _greeted(self, session: SaslSession, data: bytes) -> list[Part]:
        """Return the response to a request of a client that has not yet said who it is."""
        if session.is_bare:
            parts: list[Part] = [session.answer(data)]
        else:
            parts = await self._response(data, partial(self._authentication, session))
        if session.failure is not None:
            self._server.metrics.failed_authentications += 1
            await asyncio.sleep(self._server.limits.failure_delay_seconds)
            if session.is_bare:
                # An empty answer would mean success.
                raise RefusedRequestError(session.failure)
        return parts

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
        respond = partial(self._response, answer=self._server.answer)
        while True:
            await self._answer_next(self._server.limits.max_request_bytes, respond)

    async def _answer_next(
        self, max_bytes: int, respond: Callable[[bytes], Awaitable[list[Part]]]
    ) -> None:
        """Answer the next request. Raises RefusedRequestError for one of more than `max_bytes`."""
        wait = asyncio.wait_for(
            self._reader.readexactly(_SIZE.size), self._server.limits.idle_seconds
        )
        (size,) = _SIZE.unpack(await wait)
        if not 0 <= size <= max_bytes:
            raise RefusedRequestError(f"a request of {size} bytes, allowed are {max_bytes}")
        await self._server.in_flight.take(size)
        try:
            data = await asyncio.wait_for(
                self._reader.readexactly(size), self._server.limits.send_seconds
            )
            parts = await respond(data)
        finally:
            await self._server.in_flight.give_back(size)
        await self._send(parts)

    async def _response(self, data: bytes, answer: WaitingAnswer) -> list[Part]:
        head = read_request_head(data)
        api = self._server.offered(head)
        self._server.metrics.count(api.name)
        version = head.api_version
        if version not in api.request.versions:
            if api.key != API_VERSIONS:
                raise RefusedRequestError(
                    f"{api.name} has versions {api.request.versions}, not {version}"
                )
            # The client does not know yet which versions it may ask for.
            offered = api_versions(self._server.keys, ErrorCode.UNSUPPORTED_VERSION)
            return response_parts(api, 0, head.correlation_id, offered)
        # As by brokers, bytes after the message are ignored: librdkafka sends some.
        values, _ = read_message(api.request, version, data, head.end)
        request = Request(api, version, values, head.client_id or "", *self._hosts)
        return response_parts(api, version, head.correlation_id, await answer(request))

    async def _send(self, parts: list[Part]) -> None:
        size = sum(map(len, parts))
        self._server.metrics.sent_bytes += size
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
