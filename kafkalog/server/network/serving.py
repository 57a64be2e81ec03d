"""A server from its start to its end: in the command, and in a thread for tests and notebooks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from kafkalog.errors import OptionError
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.network.metrics import Metrics
from kafkalog.server.network.server import Server
from kafkalog.server.network.settings import Address, Limits, parse_address
from kafkalog.server.network.status import start_status
from kafkalog.server.security.access import OPEN, Access, OptionNames, access_of
from kafkalog.views.options.call_options import TimeValue, milliseconds

_STOPPED_WITHIN_SECONDS = 10
_OPTION_NAMES = OptionNames("tls", "tls", "users")


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs: its address, as clients take it, and the damage that it has met."""

    bootstrap_servers: str
    cluster: ServedCluster

    @property
    def gaps(self) -> list[str]:
        """A line for each damaged range that was left out so far."""
        return list(self.cluster.gaps.values())


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """What is served, where, to whom, and within which limits. `advertised` is the address in
    responses, `status` is where metrics are; `with_groups` says whether consumer groups are
    offered."""

    cluster: ServedCluster
    address: Address
    limits: Limits = field(default_factory=Limits)
    access: Access = OPEN
    advertised: Address | None = None
    with_groups: bool = True
    status: Address | None = None


async def run(
    request: ServeRequest, is_ready: Callable[[Address], None], stop: asyncio.Event
) -> None:
    """Serve until `stop` is set; `is_ready` gets the address once clients can connect. Raises
    OptionError where it cannot listen."""
    cluster, metrics = request.cluster, Metrics()

    def count() -> None:
        metrics.gaps += 1

    cluster.on_gap = count
    server = Server(
        *(cluster, request.address, request.limits, metrics),
        access=request.access,
        advertised=request.advertised,
        with_groups=request.with_groups,
    )
    status = None
    try:
        if request.status is not None:
            pages = {"/metrics": metrics.text, "/gaps": lambda: "".join(cluster.gap_lines())}
            status = await start_status(request.status, pages)
        is_ready(await server.start())
        await stop.wait()
    finally:
        if status is not None:
            status.close()
        await server.stop()
        cluster.close_files()


def refuse_unprotected(option: str, address: Address, access: Access) -> None:
    """Raise OptionError for an address that other machines reach, unless connections are encrypted
    and clients are authenticated."""
    if not address.is_loopback and not access.is_protected:
        raise OptionError(
            option,
            str(address),
            "a loopback address, or users, TLS certificate and TLS key; --insecure allows all",
        )


def refuse_other_hosts(option: str, address: Address) -> None:
    """Raise OptionError for an address of the status page that other machines reach."""
    if not address.is_loopback:
        raise OptionError(
            option,
            str(address),
            "a loopback address, since anyone can read this page; --insecure allows all",
        )


@contextmanager
def serve(
    paths: str | Sequence[str],
    *,
    as_of: TimeValue | None = None,
    listen: str = "127.0.0.1:0",
    tls: tuple[str, str] | None = None,
    users: str | Mapping[str, str] | None = None,
    insecure: bool = False,
    groups: bool = True,
    deleted: bool = False,
    deep: bool = False,
) -> Iterator[Running]:
    """Serve log directories to Kafka's clients while a `with` block runs, in a thread of this
    process.

    `paths` are log directories or partition directories, `as_of` a time whose state is served, in
    the forms of `kafkalog.read`. `tls` are the files of a certificate and its key, `users` names
    and passwords, or a file of them. With `deleted`, what a broker has deleted or set aside is
    served too. The server reads and changes nothing. Raises LogDirError for paths without a
    partition, OptionError for wrong arguments and where it cannot listen.
    """
    address = parse_address("listen", listen)
    certificate, key = tls or (None, None)
    access = access_of(certificate, key, users, _OPTION_NAMES)
    if not insecure:
        refuse_unprotected("listen", address, access)
    as_of_ms = None if as_of is None else milliseconds("as_of", as_of)
    now_ms = time.time_ns() // 1_000_000
    given = [paths] if isinstance(paths, str) else list(paths)
    cluster = ServedCluster(
        given, as_of_ms=as_of_ms, now_ms=now_ms, is_deep=deep, with_deleted=deleted
    )
    request = ServeRequest(cluster, address, access=access, with_groups=groups)
    thread = _Thread(request)
    thread.start()
    try:
        yield Running(thread.address(), cluster)
    finally:
        thread.stop()


class _Thread(threading.Thread):
    """Runs a server in an event loop of its own."""

    def __init__(self, request: ServeRequest) -> None:
        super().__init__(name="kafkalog-serve-loop", daemon=True)
        self._request = request
        self._is_ready = threading.Event()
        self._found: Address | None = None
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_to_stop: asyncio.Event | None = None

    def run(self) -> None:
        """Serve until `stop` is called."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 -- raised in the thread that waits
            self._error = error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        self._loop, self._asked_to_stop = asyncio.get_running_loop(), asyncio.Event()
        await run(self._request, self._ready, self._asked_to_stop)

    def _ready(self, address: Address) -> None:
        self._found = address
        self._is_ready.set()

    def address(self) -> str:
        """Return the address once clients can connect. Raises what kept it from listening."""
        self._is_ready.wait()
        if self._found is None:
            raise self._error or RuntimeError("the server has ended")
        return str(self._found)

    def stop(self) -> None:
        """End the server, and wait for it."""
        if self._loop is not None and self._asked_to_stop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._asked_to_stop.set)
        self.join(_STOPPED_WITHIN_SECONDS)
