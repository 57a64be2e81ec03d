"""What an answer is made from: a request, and what the server stands for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import re2

from kafkalog.errors import KafkaLogError
from kafkalog.messages.protocol import Api
from kafkalog.messages.schema import Values
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.logs.served_log import ServedLog
from kafkalog.server.protocol.turns import Pause, Steps

# What an expression of a client may take in memory, its program and the states that it reaches.
_MOST_PATTERN_BYTES = 1024 * 1024

# The form in which a response says that nothing is known of what a client may do.
NO_AUTHORIZED_OPERATIONS = -(2**31)


class RefusedRequestError(KafkaLogError):
    """A request that ends its connection, as a broker ends it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it was read, who sent it, and to which of the server's addresses. `node` is the
    broker that the client takes the server for on this connection, None if it has not said."""

    api: Api
    version: int
    values: Values
    client_id: str
    client_host: str
    served_host: str
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """The cluster, and the address that its brokers have: all of them the server's own."""

    cluster: ServedCluster
    host: str
    port: int

    def brokers(self, number: str) -> list[Values]:
        """Return the brokers as a response lists them; `number` is the field of the broker's
        number."""
        address = {"host": self.host, "port": self.port, "rack": None}
        return [{number: broker, **address} for broker in self.cluster.brokers]


# Reads files, beside the event loop: at once, or in steps.
Answer = Callable[[Served, Request], Values | Steps[Values]]
# Waits for other clients, or for time to pass.
WaitingAnswer = Callable[[Request], Awaitable[Values]]


def alone(log: ServedLog, read: Callable[[], Values]) -> Steps[Values]:
    """Return what a function reads of a partition, while no other request reads from it."""
    while not log.lock.acquire(blocking=False):
        yield Pause.BUSY
    try:
        return read()
    finally:
        log.lock.release()


def each_once(
    topics: list[Values], inside: str, number: str | None = None
) -> list[tuple[Values, list[Any]]]:
    """Return what names each topic of a request, and its partitions, each once and as it is
    requested last, as brokers do. They are in the field `inside`; their numbers are in the field
    `number`, or are all there is."""
    merged: dict[tuple[tuple[str, str], ...], dict[int, Any]] = {}
    for topic in topics:
        named = tuple((key, topic[key]) for key in ("name", "topic", "topicId") if key in topic)
        partitions = merged.setdefault(named, {})
        for asked in topic[inside]:
            partitions[asked if number is None else asked[number]] = asked
    return [(dict(named), list(partitions.values())) for named, partitions in merged.items()]


def pattern(text: str) -> Any:
    """Return a client's regular expression, compiled. Raises re2.error. RE2 must not print it: it
    would reach the terminal as it is."""
    options = re2.Options()
    options.log_errors, options.never_capture = False, True
    options.max_mem = _MOST_PATTERN_BYTES
    return re2.compile(text, options)
