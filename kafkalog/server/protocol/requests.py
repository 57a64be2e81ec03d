"""What an answer is made from: a request, and what the server stands for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from kafkalog.errors import KafkaLogError
from kafkalog.messages.protocol import Api
from kafkalog.messages.schema import Values
from kafkalog.server.logs.served_cluster import ServedCluster

# The form in which a response says that nothing is known of what a client may do.
NO_AUTHORIZED_OPERATIONS = -(2**31)


class RefusedRequestError(KafkaLogError):
    """A request that ends its connection, as a broker ends it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it was read, who sent it, and to which of the server's addresses."""

    api: Api
    version: int
    values: Values
    client_id: str
    client_host: str
    served_host: str


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


# Reads files, in the one thread that does.
Answer = Callable[[Served, Request], Values]
# Waits for other clients, or for time to pass.
WaitingAnswer = Callable[[Request], Awaitable[Values]]


def partitions_asked(topics: list[Values]) -> Iterator[tuple[Values, Values]]:
    """Yield the topic and the partition of each partition that a request names."""
    for topic in topics:
        for partition in topic["partitions"]:
            yield topic, partition
