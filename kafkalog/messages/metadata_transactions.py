"""Which records of `__cluster_metadata` are in force. Rule: docs/format.md F195."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

_BEGIN = "BeginTransactionRecord"
_END = "EndTransactionRecord"
_ABORT = "AbortTransactionRecord"
TRANSACTION_RECORDS = (_BEGIN, _END, _ABORT)


class MetadataRecord(Protocol):
    """A record of `__cluster_metadata`, by its type's name."""

    @property
    def name(self) -> str | None: ...
    @property
    def is_control(self) -> bool: ...


_Record = TypeVar("_Record", bound=MetadataRecord)


def records_in_force(records: Iterable[_Record]) -> Iterator[_Record]:
    """Yield the records without those of metadata transactions that were aborted or have not ended.

    Begin, end and abort themselves say nothing of the metadata and are left out. `records` are in
    the order of the log, from its start or from a snapshot's on.
    """
    pending: list[_Record] | None = None
    for record in records:
        name = record.name
        if name == _BEGIN and not record.is_control:
            pending = []
        elif name in (_END, _ABORT):
            if name == _END and pending is not None:
                yield from pending
            pending = None
        elif pending is not None and not record.is_control:
            pending.append(record)
        else:
            yield record
