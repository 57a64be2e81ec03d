"""Records as lines of a dump, in the words of kafka-dump-log. Rules: docs/command-line.md F580 to
F583.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import integers, list_entries
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_metadata import IS_CONTROL, MESSAGE_CRC
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.dump.dump_lines import TIMESTAMP_TYPES, DumpedFile, numbers_of, with_fields
from kafkalog.inspection.dump.dump_messages import (
    control_texts,
    decoded_columns,
    values_without_secrets,
)
from kafkalog.inspection.dump.text_kernels import ByteColumn
from kafkalog.inspection.dump.text_lines import (
    LineFormat,
    Template,
    byte_column,
    escaped,
    of_texts,
    regrouped,
)
from kafkalog.inspection.dump.text_pieces import LongHeaders, inner_format, line_pieces, long_text

_PAYLOADS = ("key", "payload")
_FIELDS = ("offset", "timestampType", "timestamp", "keySize", "valueSize", "sequence")
# The columns of view `records` that lines are made of.
DUMPED_COLUMNS = (
    *("offset", "timestampMs", "timestampType", "sequence", "position", IS_CONTROL),
    *(MESSAGE_CRC, "headers", "key", "value"),
)
_HEADER_CSV = ("topic", "partition", "file", *_FIELDS, "position", "headers", "control")
RECORD_CSV = (*_HEADER_CSV, "key", "keyBase64", "payload", "payloadBase64")
RECORD_CSV_WITHOUT_PAYLOADS = _HEADER_CSV


class RecordLines:
    """Turns record batches with RECORD_COLUMNS into lines. Without `payloads`, of keys and values
    the sizes only. `decoded_topic` is that of records which `kafkalog.messages` reads, if it is
    to; `show_secrets` shows also what their schemas call secret, and the secrets of Kafka Connect's
    configs. `is_judged`: lines of JSON say what consumers see of each record."""

    def __init__(
        self,
        file: DumpedFile,
        text_format: LineFormat,
        *,
        payloads: bool = True,
        decoded_topic: str | None = None,
        show_secrets: bool = False,
        is_judged: bool = False,
    ) -> None:
        self._format = text_format
        self._payloads = payloads
        self._decoded_topic = decoded_topic
        self._show_secrets = show_secrets
        front = Template().bytes_of("before").text(file.in_front("record", text_format))
        if text_format is LineFormat.JSON:
            self._template = _json(front, payloads, is_judged)
        else:
            self._template = _TEMPLATES[text_format](front, payloads)
        self._headers = _Headers(text_format)

    def lines(
        self, records: pa.RecordBatch, before: ByteColumn, seen: ByteColumn | None = None
    ) -> ByteColumn:
        """Return a line of each record. `before` is what is written before it, `seen` what
        consumers see of it, where that is requested."""
        numbers, columns = self._parts(records, before, seen)
        columns |= self._headers.columns(records.column("headers"))
        numbers["hasHeaders"] = np.diff(columns["headers"].borders) > 0
        for name in _PAYLOADS:
            if name in columns:
                columns[name] = escaped(columns[name], self._format)
                numbers[f"{name} is"] = columns[name].states
        return self._template.lines(len(records), numbers, columns)

    def pieces(
        self, record: pa.RecordBatch, before: ByteColumn, seen: ByteColumn | None = None
    ) -> Iterator[bytes]:
        """Yield the line of one record, which may be large, a piece at a time."""
        numbers, columns = self._parts(record, before, seen)
        long_texts = {
            name: long_text(columns.pop(name), self._format)
            for name in _PAYLOADS
            if name in columns
        }
        numbers |= {f"{name} is": text.state for name, text in long_texts.items()}
        headers = self._headers.of_one(record.column("headers"))
        numbers["hasHeaders"] = any(headers.pieces())
        sources = {
            "headerKeys": headers.key_pieces,
            "headers": headers.pieces,
            **{name: text.pieces for name, text in long_texts.items()},
        }
        yield from line_pieces(self._template, numbers, columns, sources)

    def _parts(
        self, records: pa.RecordBatch, before: ByteColumn, seen: ByteColumn | None
    ) -> tuple[dict[str, Any], dict[str, ByteColumn]]:
        """Return the numbers and columns of lines, without headers, keys and values not escaped."""
        key, value = byte_column(records.column("key")), byte_column(records.column("value"))
        is_control = numbers_of(records.column(IS_CONTROL))
        checksums = integers(records.column(MESSAGE_CRC))
        numbers: dict[str, Any] = {
            "offset": integers(records.column("offset")),
            "timestampType": numbers_of(records.column("timestampType")) + 1,
            "timestamp": integers(records.column("timestampMs")),
            "sequence": numbers_of(records.column("sequence")),
            "position": integers(records.column("position")),
            "keySize": key.lengths,
            "valueSize": value.lengths,
            "crc": checksums,
            "isOld": checksums != NO_VALUE,
            "isV2": checksums == NO_VALUE,
            "isControl": is_control,
            "isData": 1 - is_control,
        }
        columns = {"before": before} if seen is None else {"before": before, "visibility": seen}
        columns["control"] = control_texts(key, value, is_control, self._format)
        if self._payloads:
            if self._decoded_topic is not None:
                key, value = decoded_columns(
                    *(self._decoded_topic, (key, value), self._format),
                    show_secrets=self._show_secrets,
                )
            elif not self._show_secrets:
                value = values_without_secrets(records.column("key"), key, value)
            columns |= {"key": key, "payload": value}
        return numbers, columns


def _text(template: Template, payloads: bool) -> Template:
    template.number("offset", "| offset: ").word("timestampType", TIMESTAMP_TYPES, " ")
    template.number("timestamp", ": ").number("keySize", " keySize: ")
    template.number("valueSize", " valueSize: ")
    keys = Template().number("sequence", " sequence: ").text(" headerKeys: [")
    keys.bytes_of("headerKeys").text("]")
    template.only_if("isV2", keys)
    template.only_if("isOld", Template().number("crc", " isValid: true crc: "))
    template.only_if("hasHeaders", Template().text(" headers: [").bytes_of("headers").text("]"))
    if payloads:
        shown = Template().word("key is", (" key: ", " key: ", "", " key: ")).bytes_of("key")
        labels = (" payload: ", " payload: ", "", " payload: ")
        template.only_if("isData", shown.word("payload is", labels).bytes_of("payload"))
    return template.only_if("isControl", Template().text(" ").bytes_of("control")).text("\n")


def _json(template: Template, payloads: bool, is_judged: bool) -> Template:
    with_fields(template, (*_FIELDS, "position"), LineFormat.JSON)
    if is_judged:
        template.text(',"visibility":"').bytes_of("visibility").text('"')
    template.text(',"headers":[').bytes_of("headers").text("]")
    if payloads:
        data = Template()
        for name in ("key", "payload"):
            labels = (f',"{name}":"', f',"{name}Base64":"', f',"{name}":null', f',"{name}":')
            data.word(f"{name} is", labels).bytes_of(name).word(f"{name} is", ('"', '"', "", ""))
        template.only_if("isData", data)
    control = Template().text(',"control":').bytes_of("control")
    return template.only_if("isControl", control).text("}\n")


def _csv(template: Template, payloads: bool) -> Template:
    with_fields(template, (*_FIELDS, "position"), LineFormat.CSV)
    template.text(',"[').bytes_of("headers").text(']","').bytes_of("control").text('"')
    if payloads:
        data = Template()
        for name in ("key", "payload"):
            data.word(f"{name} is", (',"', ',,"', ",,", ',"')).bytes_of(name)
            data.word(f"{name} is", ('",', '"', "", '",'))
        template.only_if("isData", data).only_if("isControl", Template().text(",,,,"))
    return template.text("\n")


_TEMPLATES = {LineFormat.TEXT: _text, LineFormat.CSV: _csv}


class _Headers:
    """Headers as text: their keys alone, and with their values."""

    def __init__(self, text_format: LineFormat) -> None:
        self._format = text_format
        self._inner = inner_format(text_format)
        self._keys = Template().word("isFirst", (",", "")).bytes_of("key")
        if text_format is LineFormat.TEXT:
            entry = Template().word("isFirst", (", ", "")).bytes_of("key")
            entry.word("is", ("=", "=", "=null")).bytes_of("value")
        else:
            entry = Template().word("isFirst", (',{"key":"', '{"key":"')).bytes_of("key")
            entry.word("is", ('","value":"', '","valueBase64":"', '","value":null'))
            entry.bytes_of("value").word("is", ('"}', '"}', "}"))
        self._entries = entry

    def columns(self, headers: pa.Array) -> dict[str, ByteColumn]:
        """Return the columns `headerKeys` and `headers`, a row for each record."""
        entries, borders = list_entries(headers)
        first = borders.astype(np.int64)
        if not len(entries):
            nothing = regrouped(of_texts([]), first)
            return {"headerKeys": nothing, "headers": nothing}
        is_first = np.zeros(len(entries), dtype=np.int64)
        is_first[first[:-1][np.diff(first) > 0]] = 1
        keys, with_values = self._lines(entries, is_first)
        keys, with_values = regrouped(keys, first), regrouped(with_values, first)
        if self._format is LineFormat.CSV:
            with_values = escaped(with_values, LineFormat.CSV)
        return {"headerKeys": keys, "headers": with_values}

    def _lines(self, entries: pa.Array, is_first: LongArray) -> tuple[ByteColumn, ByteColumn]:
        """Return the key of each entry, and the whole entry with its separators."""
        key = escaped(byte_column(entries.field("key")), self._inner)
        value = escaped(byte_column(entries.field("value")), self._inner)
        numbers = {"isFirst": is_first, "is": value.states}
        columns = {"key": key, "value": value}
        keys = self._keys.lines(len(entries), numbers, {"key": key})
        return keys, self._entries.lines(len(entries), numbers, columns)

    def of_one(self, headers: pa.Array) -> LongHeaders:
        """Return the headers of one record, which may be large."""
        return LongHeaders(list_entries(headers)[0], self._keys, self._entries, self._format)
