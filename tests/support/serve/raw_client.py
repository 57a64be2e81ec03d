"""Requests of any version over a socket, for questions that no client of others asks."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafkalog.messages.message_reader import read_message
from kafkalog.messages.message_writer import message_parts
from kafkalog.messages.protocol import API_VERSIONS, Api, apis

_TIMEOUT_SECONDS = 30


def api_of(name: str) -> Api:
    """The pair of messages with this name."""
    return next(api for api in apis().values() if api.name == name)


def request_bytes(name: str, version: int, values: dict[str, Any], correlation_id: int) -> bytes:
    """A request as it goes over the wire, with its size in front; fields of other versions are left
    out."""
    api = api_of(name)
    head = struct.pack(">hhih", api.key, version, correlation_id, 4) + b"test"
    if version in api.request.flexible:
        head += b"\x00"
    parts = message_parts(api.request, version, values)
    data = head + b"".join(part for part in parts if isinstance(part, bytes))
    return struct.pack(">i", len(data)) + data


class RawClient:
    """One connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), _TIMEOUT_SECONDS)
        self._asked = 0

    def ask(self, name: str, version: int | None = None, **values: Any) -> dict[str, Any]:
        """The response to a request, of the newest version unless one is given."""
        api = api_of(name)
        version = api.request.versions.last if version is None else version
        self._asked += 1
        self.socket.sendall(request_bytes(name, version, values, self._asked))
        data = self.receive()
        assert struct.unpack_from(">i", data) == (self._asked,)
        is_flexible = version in api.response.flexible and api.key != API_VERSIONS
        start = 5 if is_flexible else 4
        answer, end = read_message(api.response, version, data, start)
        assert end == len(data)
        return answer

    def receive(self) -> bytes:
        """The bytes of the next response; none if the server has closed the connection."""
        head = self._exactly(4)
        return self._exactly(struct.unpack(">i", head)[0]) if head else b""

    def _exactly(self, size: int) -> bytes:
        parts, left = [], size
        while left:
            data = self.socket.recv(left)
            if not data:
                return b""
            parts.append(data)
            left -= len(data)
        return b"".join(parts)


@contextmanager
def raw_client(address: str) -> Iterator[RawClient]:
    """A client that is closed at the end."""
    client = RawClient(address)
    try:
        yield client
    finally:
        client.socket.close()
