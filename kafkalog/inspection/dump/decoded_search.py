"""Looking for records of topics whose keys and values programs write in binary forms: as
`kafkalog dump` decodes them. Rule: docs/command-line.md F1256.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrays import of_values
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.inspection.dump.record_search import RecordFilter
from kafkalog.messages.clients.mirror_records import mirror_kind, read_mirror_record

_Decoded = tuple[str | None, str | None]
_ROW = "row"


def with_decoded(
    topic: str, kept_bytes: RecordFilter, key: bytes | None, kept_values: RecordFilter
) -> RecordFilter:
    """Return a filter of the records of a topic that is decoded. It keeps those that `kept_bytes`
    keeps, and those whose decoded key is `key`, as JSON or one of its fields, and that
    `kept_values` keeps with their decoded value in place of the bytes."""
    read = _decoder(topic)

    def kept(records: pa.RecordBatch) -> pa.RecordBatch:
        numbered = records.append_column(_ROW, of_values(range(len(records)), pa.int64()))
        columns = [records.column(name).to_pylist() for name in ("key", "value", IS_CONTROL)]
        decoded = [
            (None, None) if is_control else read(record_key, value)
            for record_key, value, is_control in zip(*columns, strict=True)
        ]
        matching = [
            row
            for row, (text, _) in enumerate(decoded)
            if key is None or (text is not None and _is_key(text, key))
        ]
        values = [
            value if text is None else text.encode()
            for value, (_, text) in zip(columns[1], decoded, strict=True)
        ]
        place = numbered.schema.get_field_index("value")
        as_shown = numbered.set_column(place, "value", pa.array(values, pa.binary()))
        found = (kept_bytes(numbered), kept_values(as_shown.take(pa.array(matching, pa.int64()))))
        rows = {row for each in found for row in each.column(_ROW).to_pylist()}
        return records.take(pa.array(sorted(rows), pa.int64()))

    return kept


def _decoder(topic: str) -> Callable[[bytes | None, bytes | None], _Decoded]:
    if mirror_kind(topic) is not None:
        return partial(_of_mirror, topic)
    if topic.startswith("__"):
        return partial(_internal, topic)
    # The topic has JSON as it is.
    return lambda key, value: (_text(key), _text(value))


def _of_mirror(topic: str, key: bytes | None, value: bytes | None) -> _Decoded:
    found = read_mirror_record(topic, key, value)
    if found is None:
        return None, None
    return json.dumps(found[0]), None if found[1] is None else json.dumps(found[1])


def _internal(topic: str, key: bytes | None, value: bytes | None) -> _Decoded:
    from kafkalog.messages.dump_text import dumped_key, dumped_value
    from kafkalog.messages.internal_records import read_internal_record

    record = read_internal_record(topic, key, value)
    return dumped_key(record), dumped_value(record, show_secrets=True)


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _is_key(shown: str, key: bytes) -> bool:
    """Return whether this is the key, as JSON, or one of its fields."""
    try:
        found, wanted = json.loads(shown), key.decode()
    except (ValueError, RecursionError):
        return False
    try:
        if json.loads(wanted) == found:
            return True
    except (ValueError, RecursionError):
        pass
    return any(each == wanted for each in _texts_in(found))


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts_in(each)]
    return [value] if isinstance(value, str) else []
