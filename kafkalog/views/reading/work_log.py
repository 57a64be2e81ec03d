"""What a read costs and what it is spared, as lines of Spark's worker log: one of the planning, and
one of each task. docs/options.md says how to see them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from kafkalog.storage.files.read_counts import read_counts
from kafkalog.storage.partition_log import PartitionLog, bytes_in
from kafkalog.storage.reading.read_plan import pieces

PLANNED, READ = "kafkalog planned", "kafkalog read"

# Spark collects what is logged only where it is configured to.
_logger = logging.getLogger(__name__)
_logger.setLevel(logging.INFO)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


@contextmanager
def reported_work(line: str, context: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """Log what has been read in the meantime, with what is put into the yielded context."""
    before = read_counts.copy()
    fields = dict(context or {})
    try:
        yield fields
    finally:
        _logger.info(line, extra={"context": {**fields, **read_counts.since(before)}})


def plan_context(
    found: Sequence[PartitionLog], groups: Sequence[Sequence[_Sized]]
) -> dict[str, str]:
    """Return what was listed and what of it tasks are to read."""
    numbers = {
        "partitions_listed": len(found),
        "segments_listed": sum(len(log.segments) for log in found),
        "bytes_listed": bytes_in(found),
        "tasks": len(groups),
        "reads_planned": sum(len(group) for group in groups),
        "bytes_planned": sum(read.size for group in groups for read in pieces(group)),
    }
    return {name: str(number) for name, number in numbers.items()}
