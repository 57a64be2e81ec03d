"""How a server runs: its address, and what it allows clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address

from kafkalog.errors import OptionError

DEFAULT_LISTEN = "127.0.0.1:9092"
_LOCALHOST = "localhost"


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may ask of a server; who asks for more is disconnected.

    `max_in_flight_bytes` are those of all requests that are being read or answered,
    `max_unsent_bytes` those of all responses that clients have not taken yet. A request has
    `max_request_values` values in arrays at most. Requests of more than `large_bytes` are answered
    `max_large` at a time. A connection that neither sends nor takes anything for `idle_seconds` is
    closed. Clients that have not said yet who they are, or with which TLS keys they speak, are
    `max_arriving` at most, have `arriving_seconds`, and may send `max_arriving_bytes` at a time.
    """

    max_request_bytes: int = 4 * 1024 * 1024
    max_connections: int = 2000
    max_in_flight_bytes: int = 64 * 1024 * 1024
    max_unsent_bytes: int = 256 * 1024 * 1024
    max_request_values: int = 250_000
    large_bytes: int = 64 * 1024
    max_large: int = 4
    idle_seconds: float = 600
    send_seconds: float = 60
    max_arriving: int = 200
    arriving_seconds: float = 20
    max_arriving_bytes: int = 64 * 1024
    failure_delay_seconds: float = 1


@dataclass(frozen=True, slots=True)
class Address:
    """A host, and a port: 0 for any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == _LOCALHOST

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@contextmanager
def told_of_addresses(option: str, address: Address) -> Iterator[None]:
    """Raise OptionError for an address at which the block cannot listen."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OptionError(option, str(address), f"an address to listen at: {reason}") from error


def parse_address(option: str, text: str) -> Address:
    """Return the address that HOST:PORT means. Raises OptionError."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OptionError(option, text, "HOST:PORT, such as 127.0.0.1:9092, or port 0 for any")
    return Address(host, int(port))
