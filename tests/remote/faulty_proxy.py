"""A proxy in front of an object store on loopback: notes all requests, and does what real stores
and networks do at times."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)

_RANGE = re.compile(r"(\d+)-(\d+)")


class Fault(Enum):
    """What goes wrong with a request."""

    SLOW_DOWN = "answered with 503 SlowDown"
    CUT = "the connection ends in the middle of the body"
    REFUSED = "answered with 403 AccessDenied"


@dataclass(frozen=True)
class Request:
    """A request as it was answered; `key` is the object's, or the listed prefix."""

    method: str
    key: str
    is_listing: bool
    status: int
    size: int


class FaultyProxy:
    """A context manager; `requests` are those since `forget`. `delay_seconds` is waited before each
    answer, and `before_answer` called with the method and the path."""

    def __init__(self, target_port: int) -> None:
        self.requests: list[Request] = []
        self.delay_seconds = 0.0
        self.before_answer: Callable[[str, str], None] = lambda method, path: None
        self._faults: list[tuple[Fault, str]] = []
        self._within = (0, 2**63)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy, self._server.target_port = self, target_port
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextmanager
    def faulty(
        self, fault: Fault, ending: str, times: int = 10_000, within: tuple[int, int] = (0, 2**63)
    ) -> Iterator[None]:
        """Let the next requests for bytes of objects whose keys end so go wrong; those that ask for
        some of the bytes `within`."""
        self._within = within
        self._faults = [(fault, ending)] * times
        try:
            yield
        finally:
            self._faults = []

    def forget(self) -> None:
        """Forget the requests so far."""
        self.requests = []

    def note(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def next_fault(self, method: str, key: str, asked: str) -> Fault | None:
        found = _RANGE.search(asked)
        first, last = map(int, found.groups()) if found else (0, 2**62)
        with self._lock:
            is_within = first < self._within[1] and self._within[0] <= last
            is_meant = self._faults and method == "GET" and key.endswith(self._faults[0][1])
            if is_meant and is_within:
                return self._faults.pop(0)[0]
        return None

    def reads(self, ending: str = "") -> list[Request]:
        """The requests for objects' bytes, of keys that end so."""
        return [
            request
            for request in self.requests
            if request.method == "GET" and not request.is_listing and request.key.endswith(ending)
        ]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: FaultyProxy
    target_port: int

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing about a client that has closed its connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        proxy = self.server.proxy
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        is_listing = "list-type" in query
        key = query.get("prefix", [""])[0] if is_listing else parts.path
        proxy.before_answer(self.command, parts.path)
        time.sleep(proxy.delay_seconds)
        fault = (
            None
            if is_listing
            else proxy.next_fault(self.command, key, self.headers.get("Range", ""))
        )
        if fault is Fault.SLOW_DOWN:
            status, headers, body = 503, {"Content-Type": "application/xml"}, _SLOW_DOWN
        elif fault is Fault.REFUSED:
            refused = _SLOW_DOWN.replace(b"SlowDown", b"AccessDenied")
            status, headers, body = 403, {"Content-Type": "application/xml"}, refused
        else:
            status, headers, body = self._forwarded()
        sent = body[: len(body) // 2] if fault is Fault.CUT else body
        proxy.note(Request(self.command, key, is_listing, status, len(sent)))
        self.send_response_only(status)
        if self.command != "HEAD":
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)
        if fault is Fault.CUT:
            self.close_connection = True

    do_HEAD = do_GET  # noqa: N815

    def _forwarded(self) -> tuple[int, dict[str, str], bytes]:
        target = http.client.HTTPConnection("127.0.0.1", self.server.target_port)
        try:
            target.request(self.command, self.path, headers=dict(self.headers.items()))
            answer = target.getresponse()
            hop = ("connection", "transfer-encoding", "keep-alive")
            headers = {k: v for k, v in answer.getheaders() if k.lower() not in hop}
            return answer.status, headers, answer.read()
        finally:
            target.close()

    def log_message(self, *args: object) -> None:
        """The proxy keeps notes itself."""
