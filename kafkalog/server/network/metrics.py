"""What a server counts, and the text in which Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_PREFIX = "kafkalog_serve"


@dataclass
class Metrics:
    """Counts since the start, but for `connections`, which are those of now."""

    connections: int = 0
    refused_connections: int = 0
    refused_requests: int = 0
    failed_authentications: int = 0
    fetched_bytes: int = 0
    sent_bytes: int = 0
    gaps: int = 0
    requests: Counter[str] = field(default_factory=Counter)

    def count(self, name: str) -> None:
        """Count a request by its name."""
        self.requests[name] += 1

    def text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _metric("connections", "gauge", "Open connections.", self.connections)
        for name, meaning, value in (
            ("refused_connections", "Connections above the limit.", self.refused_connections),
            ("refused_requests", "Requests that ended a connection.", self.refused_requests),
            (
                "failed_authentications",
                "Clients with a wrong name or password.",
                self.failed_authentications,
            ),
            ("fetched_bytes", "Bytes of records in answers to Fetch.", self.fetched_bytes),
            ("sent_bytes", "Bytes of all responses.", self.sent_bytes),
            ("gaps", "Damaged ranges that were left out.", self.gaps),
        ):
            yield from _metric(f"{name}_total", "counter", meaning, value)
        yield f"# HELP {_PREFIX}_requests_total Requests by name."
        yield f"# TYPE {_PREFIX}_requests_total counter"
        for name, value in sorted(self.requests.items()):
            yield f'{_PREFIX}_requests_total{{request="{name}"}} {value}'


def _metric(name: str, kind: str, meaning: str, value: int) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_{name} {meaning}"
    yield f"# TYPE {_PREFIX}_{name} {kind}"
    yield f"{_PREFIX}_{name} {value}"
