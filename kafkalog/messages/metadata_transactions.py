"""Which records of `__cluster_metadata` are in force. Rule: docs/format.md F195."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkalog.messages.internal_records import InternalRecord

_BEGIN = "BeginTransactionRecord"
_END = "EndTransactionRecord"
_ABORT = "AbortTransactionRecord"


def records_in_force(records: Iterable[InternalRecord]) -> Iterator[InternalRecord]:
    """Yield the records without those of metadata transactions that were aborted or have not ended.

    Begin, end and abort themselves say nothing of the metadata and are left out. `records` are in
    the order of the log, from its start or from a snapshot's on.
    """
    pending: list[InternalRecord] | None = None
    for record in records:
        if record.name == _BEGIN and not record.is_control:
            pending = []
        elif record.name in (_END, _ABORT):
            if record.name == _END and pending is not None:
                yield from pending
            pending = None
        elif pending is not None and not record.is_control:
            pending.append(record)
        else:
            yield record
