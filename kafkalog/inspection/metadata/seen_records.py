"""Which types and versions of records a start reads from `__cluster_metadata`. Rule:
docs/format.md F1015."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.coordination.metadata.release_refusals import SeenRecords
from kafkalog.inspection.metadata.metadata_log import MetadataEntry
from kafkalog.messages.internal_records import TOO_LARGE, UNKNOWN_TYPE, UNKNOWN_VERSION
from kafkalog.messages.schema import needed_version

_READ_OR_UNKNOWN = (None, UNKNOWN_TYPE, UNKNOWN_VERSION)


def seen_records(
    entries: Iterable[MetadataEntry], of_snapshot: Iterable[MetadataEntry] = ()
) -> SeenRecords:
    """Return the types and versions of a copy's records, those of a snapshot first: control
    records, which every release reads, are left out; of those that cannot be read the first is
    kept."""
    seen = SeenRecords()
    for entry in of_snapshot:
        _add(seen, entry, None)
    for entry in entries:
        _add(seen, entry, entry.offset)
    return seen


def _add(seen: SeenRecords, entry: MetadataEntry, offset: int | None) -> None:
    record = entry.record
    number, version = record.record_type, record.value_version
    if record.is_control or record.reason == TOO_LARGE:
        return
    if number is None or record.reason not in _READ_OR_UNKNOWN:
        if seen.unreadable is None:
            seen.unreadable = offset, f"{record.name or 'a record'}: {record.detail}"
        return
    if record.definition is not None and record.value is not None and version is not None:
        version = needed_version(record.definition.value, version, record.value)
    seen.add(offset, number, version or 0, record.name)
