"""Records of `__cluster_metadata`, those of one type and version together.

Rule: docs/format.md F189. The rest is left to `read_internal_record`, whose results these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kafkalog.columns.messages.message_columns import grouped_rows, read_messages
from kafkalog.messages.catalog import topic_family
from kafkalog.messages.internal_records import (
    FRAME_VERSION,
    LARGEST_RECORD,
    InternalRecord,
    read_internal_record,
)

_TOPIC = "__cluster_metadata"
# Frame, type and version are a byte each in all records so far.
_FRAME_BYTES = 3
_ONE_BYTE = 0x80
# Of fewer records of a type together nothing is faster.
_LEAST = 16


def read_metadata_records(
    records: Sequence[tuple[bytes | None, bytes | None]],
) -> list[InternalRecord]:
    """Return the data records with these keys and values."""
    found: list[InternalRecord | None] = [None] * len(records)
    for row, record in _read_together([value or b"" for _, value in records]):
        found[row] = record
    return [
        read_internal_record(_TOPIC, *given) if record is None or given[0] is not None else record
        for given, record in zip(records, found, strict=True)
    ]


def _read_together(values: Sequence[bytes]) -> Iterator[tuple[int, InternalRecord]]:
    sizes = np.array([len(value) for value in values], dtype=np.int64)
    if len(values) < _LEAST or sizes.max() > LARGEST_RECORD:
        return
    data = b"".join(values)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    # Values that are too short for a frame look into the next one; they are not chosen.
    content = np.frombuffer(data + bytes(_FRAME_BYTES), dtype=np.uint8)
    frames, types, versions = (content[starts + i].astype(np.int64) for i in range(_FRAME_BYTES))
    is_chosen = (sizes >= _FRAME_BYTES) & (frames == FRAME_VERSION)
    is_chosen &= (types < _ONE_BYTE) & (versions < _ONE_BYTE)
    chosen = np.flatnonzero(is_chosen)
    for number, places in grouped_rows(types[chosen] * _ONE_BYTE + versions[chosen]):
        record_type, version = divmod(number, _ONE_BYTE)
        definition = topic_family(_TOPIC).record_types.get(record_type)
        if definition is None or len(places) < _LEAST:
            continue
        rows = chosen[places]
        read = read_messages(
            definition.value, version, data, starts[rows] + _FRAME_BYTES, ends[rows]
        )
        for row, value in zip(rows.tolist(), read, strict=True):
            if value is not None:
                yield (
                    row,
                    InternalRecord(
                        is_control=False,
                        is_tombstone=False,
                        record_type=record_type,
                        name=definition.name,
                        key_version=None,
                        value_version=version,
                        key=None,
                        value=value,
                        reason=None,
                        detail=None,
                        definition=definition,
                        may_hold_secrets=definition.value.has_secrets,
                    ),
                )
