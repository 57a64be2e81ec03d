"""The status page: metrics for Prometheus at /metrics, damage that was met at /gaps, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from kafkalog.server.network.settings import Address, told_of_addresses

# A request's line and headers.
_MOST_REQUEST_BYTES = 16 * 1024
_SECONDS = 10
Pages = Mapping[str, Callable[[], str]]


async def start_status(address: Address, pages: Pages) -> asyncio.Server:
    """Listen for requests of these pages, by their paths. Raises OptionError where it cannot."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _SECONDS)
            writer.write(_response(head, pages))
            await asyncio.wait_for(writer.drain(), _SECONDS)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        except asyncio.LimitOverrunError:
            writer.write(_framed("431 Request Header Fields Too Large", ""))
        finally:
            writer.close()

    with told_of_addresses("--metrics", address):
        return await asyncio.start_server(
            answer, address.host, address.port, limit=_MOST_REQUEST_BYTES
        )


def _response(head: bytes, pages: Pages) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0].decode("ascii", errors="replace")
    if method != b"GET":
        return _framed("405 Method Not Allowed", "")
    if path not in pages:
        return _framed("404 Not Found", "".join(f"{known}\n" for known in pages))
    return _framed("200 OK", pages[path]())


def _framed(status: str, body: str) -> bytes:
    data = body.encode("utf-8", errors="replace")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + data
