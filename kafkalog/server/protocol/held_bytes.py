"""What requests, responses and members of groups take in memory, up to a limit in all.

Bytes count when they are there, not when a client announces them, and no client waits for room:
where there is none, whoever holds most has to go. Who holds little never has to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Protocol

from kafkalog.log_lines import logger
from kafkalog.server.protocol.requests import RefusedRequestError

_logger = logger(__name__)


class Holder(Protocol):
    """Whose bytes are in memory: a connection, a group or its member."""

    @property
    def name(self) -> str:
        """Who it is, for a message."""

    def drop(self) -> None:
        """End it, so that its bytes are free."""


class HeldBytes:
    """Bytes that holders have, `limit` at most in all. `kind` says in messages what they are of."""

    def __init__(self, kind: str, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._held: dict[Holder, int] = {}
        self._total = 0

    def add(self, holder: Holder, size: int) -> None:
        """Count more bytes of a holder, as `put` does."""
        self.put(holder, self._held.get(holder, 0) + size)

    def put(self, holder: Holder, size: int) -> None:
        """Count so many bytes of a holder. Those who hold more are dropped if need be. Raises
        RefusedRequestError if it holds most itself; it counts no more then."""
        self._total += size - self._held.get(holder, 0)
        self._held[holder] = size
        while self._total > self._limit:
            largest = max(self._held, key=self._held.__getitem__)
            words = f"{self._held[largest]} bytes of {self._kind} are the most"
            words = f"{words} of all, and {self._limit} in all are allowed"
            self.clear(largest)
            if largest is holder:
                raise RefusedRequestError(words)
            _logger.warning("%s: closed: %s", largest.name, words)
            largest.drop()

    def clear(self, holder: Holder) -> None:
        """Count none of a holder's bytes any more."""
        self._total -= self._held.pop(holder, 0)


def memory_of(values: Iterable[str | bytes | None]) -> int:
    """Return how many bytes texts and bytes take in memory."""
    return sum(map(sys.getsizeof, values))
