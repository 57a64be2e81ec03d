"""Records of internal topics as rows about what they say: view `messages`,
schemas/tables/messages.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import Constant, fixed_width, of_values, record_batch
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.messages.internal_records import (
    InternalRecord,
    read_control_record,
    read_internal_record,
)
from kafkalog.messages.rendering import key_json, value_json

# Columns that the record has anyhow, by their names in view `records`.
_OF_THE_RECORD = {
    "broker_id": "brokerId",
    "file": "file",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestamp_ms": "timestampMs",
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "is_transactional": "isTransactional",
    "is_control": IS_CONTROL,
}
_READ = ("key", "value", IS_CONTROL)
# Limits of a batch: JSON can be many times as long as the bytes.
_MOST_ROWS = 8192
_MOST_CHARACTERS = 8 * 1024 * 1024


class _Row(NamedTuple):
    record: InternalRecord
    raw_key: bytes | None
    raw_value: bytes | None


class MessageColumns:
    """Turns record batches of `record_columns` into such of the given columns of view `messages`.

    `constants` are columns with one value for the whole segment. `show_secrets` also shows what
    the message schemas call secret.
    """

    def __init__(
        self,
        topic: str,
        columns: Sequence[str],
        constants: Mapping[str, str | int | None],
        *,
        show_secrets: bool,
    ) -> None:
        self._topic = topic
        self._schema = arrow_schema("messages", tuple(columns))
        self._constants = {
            name: Constant(constants.get(name), self._schema.field(name).type)
            for name in columns
            if name not in _OF_THE_RECORD and name not in _DECODED
        }
        self._show_secrets = show_secrets
        self._decoded = [name for name in columns if name in _DECODED]
        carried = {_OF_THE_RECORD[name] for name in columns if name in _OF_THE_RECORD}
        self.record_columns = (*_READ, *sorted(carried - set(_READ)))

    def batches(self, records: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a record batch in batches with limits on rows and characters."""
        keys, values, is_control = (records.column(name).to_pylist() for name in _READ)
        begin = characters = 0
        rows: list[tuple[object, ...]] = []
        for key, value, control in zip(keys, values, is_control, strict=True):
            rows.append(self._row(key, value, control))
            characters += sum(len(part) for part in rows[-1] if isinstance(part, str | bytes))
            if len(rows) == _MOST_ROWS or characters >= _MOST_CHARACTERS:
                yield self._batch(records.slice(begin, len(rows)), rows)
                begin, characters = begin + len(rows), 0
                rows.clear()
        if rows:
            yield self._batch(records.slice(begin, len(rows)), rows)

    def _row(self, key: bytes | None, value: bytes | None, is_control: bool) -> tuple[object, ...]:
        if is_control:
            record = read_control_record(key, value)
        else:
            record = read_internal_record(self._topic, key, value)
        row = _Row(record, key, value)
        return tuple(_DECODED[name](row, self._show_secrets) for name in self._decoded)

    def _batch(self, records: pa.RecordBatch, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {
            name: constant.of(len(rows)) for name, constant in self._constants.items()
        }
        for index, name in enumerate(self._decoded):
            column = [row[index] for row in rows]
            columns[name] = of_values(column, self._schema.field(name).type)
        for name in self._schema.names:
            if name in _OF_THE_RECORD:
                columns[name] = records.column(_OF_THE_RECORD[name])
        if "timestamp_ms" in columns:
            columns["timestamp_ms"] = _without_sentinel(columns["timestamp_ms"])
        return record_batch(columns, self._schema, len(rows))


def _without_sentinel(numbers: pa.Array) -> pa.Array:
    values = np.array(numbers.to_pylist(), dtype=np.int64)
    return fixed_width(values, numbers.type, values == NO_VALUE)


def _raw_key(row: _Row, show_secrets: bool) -> bytes | None:
    record = row.record
    has_form = record.is_control or record.key is not None
    return row.raw_key if record.reason or not has_form else None


def _raw_value(row: _Row, show_secrets: bool) -> bytes | None:
    is_shown = show_secrets or not row.record.may_hold_secrets
    return row.raw_value if row.record.reason and is_shown else None


# Columns that come from reading the record, given whether secrets are shown.
_DECODED: dict[str, Callable[[_Row, bool], Any]] = {
    "record_type": lambda row, _: row.record.record_type,
    "record_name": lambda row, _: row.record.name,
    "version": lambda row, _: row.record.value_version,
    "key": lambda row, _: key_json(row.record),
    "value": lambda row, show_secrets: value_json(row.record, show_secrets=show_secrets),
    "is_tombstone": lambda row, _: row.record.is_tombstone,
    "reason": lambda row, _: row.record.reason,
    "detail": lambda row, _: row.record.detail,
    "raw_key": _raw_key,
    "raw_value": _raw_value,
}
