"""Decoded control records and records of internal topics, as byte columns of a dump.

Most logs have neither: what reads them is imported where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.secret_configs import CONNECT_KEYS, without_connect_secrets
from kafkalog.inspection.dump.text_kernels import IS_JSON, IS_NULL, IS_TEXT, ByteColumn
from kafkalog.inspection.dump.text_lines import LineFormat, escaped, of_pieces, spread
from kafkalog.messages.clients.ksql_commands import (
    ksql_service,
    read_ksql_command,
    without_ksql_secrets,
)
from kafkalog.messages.clients.mirror_records import mirror_kind, read_mirror_record
from kafkalog.words import printable_json

_TOMBSTONE = "<DELETE>"


def control_texts(
    key: ByteColumn, value: ByteColumn, is_control: LongArray, text_format: LineFormat
) -> ByteColumn:
    """Return the decoded control records; the rows of other records are empty."""
    rows = np.flatnonzero(is_control).tolist()
    if not rows:
        return spread({}, len(is_control))
    from kafkalog.messages.dump_text import control_json, control_text
    from kafkalog.messages.internal_records import read_control_record

    write = control_text if text_format is LineFormat.TEXT else control_json
    pieces = {
        row: write(read_control_record(_bytes_at(key, row), _bytes_at(value, row))).encode()
        for row in rows
    }
    texts = spread(pieces, len(is_control))
    return texts if text_format is LineFormat.JSON else escaped(texts, text_format)


def message_columns(
    topic: str,
    payloads: tuple[ByteColumn, ByteColumn],
    text_format: LineFormat,
    *,
    show_secrets: bool,
) -> tuple[ByteColumn, ByteColumn]:
    """Return keys and values of an internal topic as JSON, not escaped yet. What cannot be read
    stays as it is, a value that may hold what is secret is left out."""
    from kafkalog.messages.dump_text import dumped_key, dumped_value
    from kafkalog.messages.internal_records import read_internal_record

    state = IS_JSON if text_format is LineFormat.JSON else IS_TEXT
    shown_pairs: list[tuple[tuple[bytes | None, int], tuple[bytes | None, int]]] = []
    for row in range(len(payloads[0].states)):
        raw = _bytes_at(payloads[0], row), _bytes_at(payloads[1], row)
        record = read_internal_record(topic, *raw)
        if record.reason is not None:
            is_shown = show_secrets or not record.may_hold_secrets
            shown_pairs.append(((raw[0], IS_TEXT), (raw[1] if is_shown else None, IS_TEXT)))
            continue
        value = dumped_value(record, show_secrets=show_secrets)
        if record.is_tombstone and text_format is LineFormat.TEXT:
            value = _TOMBSTONE
        has_form = record.key is not None
        key = _encoded(dumped_key(record), text_format)
        shown_key = (key, state) if has_form else (raw[0], IS_TEXT)
        shown_pairs.append((shown_key, (_encoded(value, text_format), state)))
    keys, values = (of_pieces(side) for side in zip(*shown_pairs, strict=True))
    return keys, values


def is_decoded(topic: str) -> bool:
    """Return whether records of a topic are shown decoded: those of brokers, of MirrorMaker, and
    the commands of ksqlDB."""
    # All of brokers' topics begin so; the messages of the others need not be read from a file.
    if not topic.startswith("__"):
        return mirror_kind(topic) is not None or ksql_service(topic) is not None
    from kafkalog.messages.catalog import topic_families

    return topic in topic_families()


def decoded_columns(
    topic: str,
    payloads: tuple[ByteColumn, ByteColumn],
    text_format: LineFormat,
    *,
    show_secrets: bool,
) -> tuple[ByteColumn, ByteColumn]:
    """Return keys and values of a topic that `is_decoded` as JSON, not escaped yet."""
    columns = message_columns if topic.startswith("__") else client_columns
    return columns(topic, payloads, text_format, show_secrets=show_secrets)


def shown_payloads(
    topic: str, key: bytes | None, value: bytes | None, *, is_control: bool
) -> tuple[bytes | str | None, bytes | str | None]:
    """Return the key and the value of a record as a dump shows them, without secrets; a control
    record is in place of its value."""
    if is_control:
        from kafkalog.messages.dump_text import control_text
        from kafkalog.messages.internal_records import read_control_record

        return None, control_text(read_control_record(key, value))
    if is_decoded(topic):
        raw = of_pieces([(key, IS_TEXT)]), of_pieces([(value, IS_TEXT)])
        decoded = decoded_columns(topic, raw, LineFormat.TEXT, show_secrets=False)
        key, value = (_bytes_at(column, 0) for column in decoded)
    elif key is not None and value is not None and key.startswith(CONNECT_KEYS):
        value = without_connect_secrets(key, value)
    return key, value


def payload_text(payload: bytes | str | None) -> str | None:
    """Return a payload for a table for people: bytes that are not UTF-8 follow `hex:`."""
    if payload is None or isinstance(payload, str):
        return payload
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return f"hex:{payload.hex()}"


def client_columns(
    topic: str,
    payloads: tuple[ByteColumn, ByteColumn],
    text_format: LineFormat,
    *,
    show_secrets: bool,
) -> tuple[ByteColumn, ByteColumn]:
    """Return keys and values of a topic of MirrorMaker or ksqlDB as JSON, not escaped yet; what has
    another form stays as it is."""
    state = IS_JSON if text_format is LineFormat.JSON else IS_TEXT
    shown: list[tuple[tuple[bytes | None, int], tuple[bytes | None, int]]] = []
    for row in range(len(payloads[0].states)):
        key, value = (_bytes_at(payload, row) for payload in payloads)
        texts = _client_texts(topic, key, value, show_secrets=show_secrets)
        if texts is None:
            shown.append(((key, IS_TEXT), (value, IS_TEXT)))
            continue
        of_key, of_value = (_encoded(text, text_format) for text in texts)
        shown.append(((of_key, state), (of_value, state)))
    keys, values = (of_pieces(side) for side in zip(*shown, strict=True))
    return keys, values


def _client_texts(
    topic: str, key: bytes | None, value: bytes | None, *, show_secrets: bool
) -> Sequence[str | None] | None:
    if mirror_kind(topic) is not None:
        found = read_mirror_record(topic, key, value)
        if found is None:
            return None
        return [None if each is None else json.dumps(each, ensure_ascii=False) for each in found]
    if key is None or value is None or read_ksql_command(key, value) is None:
        return None
    return key.decode(), (value if show_secrets else without_ksql_secrets(value)).decode()


def values_without_secrets(keys: pa.Array, key: ByteColumn, value: ByteColumn) -> ByteColumn:
    """Return values without the secrets of Kafka Connect's configs. `keys` are those of `key`."""
    if not len(keys):
        return value
    shown: dict[int, bytes] = {}
    for row in np.flatnonzero(may_have_connect_secrets(keys)).tolist():
        found, before = _bytes_at(key, row), _bytes_at(value, row)
        if found is not None and before is not None:
            after = without_connect_secrets(found, before)
            if after != before:
                shown[row] = after
    if not shown:
        return value
    rows = range(len(value.states))
    return of_pieces([(shown.get(row, _bytes_at(value, row)), IS_TEXT) for row in rows])


def may_have_connect_secrets(keys: pa.Array) -> pa.Array:
    """Return which keys are like those of Kafka Connect's configs; false for null."""
    found = [pc.starts_with(keys, prefix) for prefix in CONNECT_KEYS]
    return pc.fill_null(reduce(pc.or_, found), fill_value=False)


def _encoded(text: str | None, text_format: LineFormat) -> bytes | None:
    if text is None:
        return None
    # JSON is copied as it is; the other formats escape it like other texts.
    return (printable_json(text) if text_format is LineFormat.JSON else text).encode()


def _bytes_at(column: ByteColumn, row: int) -> bytes | None:
    if column.states[row] == IS_NULL:
        return None
    return column.data[column.borders[row] : column.borders[row + 1]].tobytes()
