"""Whether all replicas of a partition of `__consumer_offsets` are in the input: only then is it
known what groups have committed to Kafka, and where the partition ends. Rule: docs/migration.md
F486.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_TOPIC = "__consumer_offsets"
_NO_BROKERS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class OffsetsReplicas:
    """Which brokers have each partition of `__consumer_offsets`: `named` by its znode, and `given`,
    those whose logs of it are in the input. `has_topic` says whether either knows the topic."""

    has_topic: bool = False
    named: Mapping[int, frozenset[int]] = field(default_factory=dict)
    given: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def fault(self, partition: int | None) -> str | None:
        """Return why commits in a partition can be missing from the input, None if they cannot.
        `partition` is None if it is not known. A cluster without the topic has no commits."""
        if not self.has_topic:
            return None
        if partition is None:
            return f"how many partitions {_TOPIC} has is not known"
        if not self.named.get(partition):
            return f"no znode says which brokers have {_TOPIC}-{partition}"
        missing = self._missing_of(partition)
        return f"{_TOPIC}-{partition} of {counted_brokers(missing)} is missing" if missing else None

    def missing_brokers(self) -> frozenset[int]:
        """Return the brokers that lack a replica in the input."""
        return _NO_BROKERS.union(*map(self._missing_of, self.named))

    def _missing_of(self, partition: int) -> frozenset[int]:
        return self.named[partition] - self.given.get(partition, _NO_BROKERS)


def counted_brokers(brokers: Iterable[int]) -> str:
    """Return one or more brokers in words."""
    ids = sorted(brokers)
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
