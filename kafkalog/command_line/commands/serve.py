"""`kafkalog serve`: log directories for Kafka's clients, read-only."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.terminal import print_note
from kafkalog.errors import LogDirError
from kafkalog.exit_codes import StoppedError
from kafkalog.server.network.settings import DEFAULT_LISTEN, Limits, parse_address
from kafkalog.views.options import click_options as shared

if TYPE_CHECKING:
    from kafkalog.server.network.serving import ServeRequest
    from kafkalog.server.network.settings import Address

_LIMITS = Limits()

_EPILOG = f"""\
{shared.PATHS_MEANING}
Clients connect as to a broker: give the address as bootstrap server. Whatever would write is
refused. Consumer groups begin where they had committed on disk; what they commit now is kept in
memory, and forgotten at the end. Damaged batches are left out, and clients go on after them; stderr
names each. The logs are listed once, at the start. Ctrl-C ends the server.

\b
Examples:
  kafkalog serve /backup/broker-*/kafka-logs
  kafkalog serve /var/lib/kafka/data --as-of 2026-11-16T00:00:00Z
  kafkalog serve /backup/data --listen 127.0.0.1:19092 --metrics 127.0.0.1:9404
  kafkalog serve /backup/data --listen 127.0.0.1:0 --ready-file address.txt
  kafkalog serve /backup/data --listen 0.0.0.0:9092 --advertised-listener backup.example.com:9092 \\
    --users users.properties --tls-certificate backup.pem --tls-key backup.key
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.as_of_option("Serve the state at a past time")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=DEFAULT_LISTEN,
    show_default=True,
    help="Where clients connect; port 0 is any that is free.",
)
@click.option(
    "--advertised-listener",
    metavar="HOST:PORT",
    help="The address that responses give to clients; by default where they have connected.",
)
@click.option(
    "--users",
    metavar="FILE",
    help="Let in only these users: a line NAME=PASSWORD for each, for SASL's PLAIN, SCRAM-SHA-256 "
    "and SCRAM-SHA-512.",
)
@click.option(
    "--tls-certificate", metavar="FILE", help="Encrypt connections: the certificate chain in PEM."
)
@click.option("--tls-key", metavar="FILE", help="The certificate's private key in PEM.")
@click.option(
    "--insecure", is_flag=True, help="Allow other addresses than loopback without --users and TLS."
)
@click.option(
    "--groups/--no-groups",
    "with_groups",
    default=True,
    show_default=True,
    help="Offer consumer groups.",
)
@click.option(
    "--deleted",
    "with_deleted",
    is_flag=True,
    help="Serve also what a broker has deleted or set aside, in directories that end in -delete or "
    "-stray.",
)
@click.option(
    "--deep", is_flag=True, help="Decompress all batches, and leave out those that cannot be read."
)
@click.option(
    "--ready-file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the address to this file once clients can connect; remove it at the end.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus at /metrics, and damage at /gaps.",
)
@click.option(
    "--max-connections",
    metavar="N",
    type=click.IntRange(min=1),
    default=_LIMITS.max_connections,
    show_default=True,
    help="Refuse more connections.",
)
@click.option(
    "--max-request-bytes",
    metavar="N",
    type=click.IntRange(min=1024),
    default=_LIMITS.max_request_bytes,
    show_default=True,
    help="Disconnect who sends a larger request.",
)
def serve(
    paths: Sequence[str],
    as_of: int | None,
    listen: str,
    advertised_listener: str | None,
    users: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
    insecure: bool,
    with_groups: bool,
    with_deleted: bool,
    deep: bool,
    ready_file: str | None,
    metrics: str | None,
    max_connections: int,
    max_request_bytes: int,
) -> None:
    """Serve log directories to Kafka's clients, read-only."""
    from kafkalog.server.logs.served_cluster import ServedCluster
    from kafkalog.server.network.serving import ServeRequest, refuse_other_hosts, refuse_unprotected
    from kafkalog.server.security.access import OptionNames, access_of

    address = parse_address("--listen", listen)
    advertised = None
    if advertised_listener is not None:
        advertised = parse_address("--advertised-listener", advertised_listener)
    names = OptionNames("--tls-certificate", "--tls-key", "--users")
    access = access_of(tls_certificate, tls_key, users, names)
    status = None if metrics is None else parse_address("--metrics", metrics)
    if not insecure:
        refuse_unprotected("--listen", address, access)
        if status is not None:
            refuse_other_hosts("--metrics", status)
    _allow_open_files()
    limits = Limits(max_connections=max_connections, max_request_bytes=max_request_bytes)
    now_ms = time.time_ns() // 1_000_000
    cluster = ServedCluster(
        paths, as_of_ms=as_of, now_ms=now_ms, is_deep=deep, with_deleted=with_deleted
    )
    request = ServeRequest(
        *(cluster, address, limits, access, advertised), with_groups=with_groups, status=status
    )
    stopped_by = asyncio.run(_serve(request, ready_file))
    for line in cluster.summary():
        print_note(line)
    raise StoppedError(stopped_by)


def _allow_open_files() -> None:
    """Allow this process as many open files as it may allow itself, as Java does. Each connection
    is one, and shells often allow 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # where the system allows fewer than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(request: ServeRequest, ready_file: str | None) -> int:
    """Serve until a signal comes, and return it."""
    from kafkalog.server.network.serving import run

    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)

    def is_ready(address: Address) -> None:
        for line in request.cluster.contents():
            print_note(line)
        print_note(f"clients connect to {address}")
        if ready_file is not None:
            _write_ready(ready_file, str(address))

    try:
        await run(request, is_ready, stop)
    finally:
        if ready_file is not None and os.path.isfile(ready_file):
            os.remove(ready_file)
    return received[0]


def _write_ready(path: str, address: str) -> None:
    """Write the file whole or not at all. Raises LogDirError where it cannot be written."""
    scratch = f"{path}.{os.getpid()}.tmp"
    try:
        with open(scratch, "w", encoding="utf-8") as file:
            file.write(f"{address}\n")
        os.replace(scratch, path)
    except OSError as error:
        raise LogDirError(f"--ready-file {path}: {error.strerror}") from error
