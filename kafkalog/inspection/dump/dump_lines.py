"""Batches as lines of a dump, in the words of kafka-dump-log. Rules: docs/command-line.md F580 and
F583.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.columns.arrays import booleans, integers, present
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.batch_columns import BatchColumns
from kafkalog.columns.records.record_metadata import COMPRESSION_NAMES
from kafkalog.format.batch_header import COMPRESSION_BITS, LOG_APPEND_TIME_BIT, NO_VALUE
from kafkalog.inspection.dump.text_kernels import ByteColumn
from kafkalog.inspection.dump.text_lines import LineFormat, Template, escaped_text, of_texts

TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")
_FLAGS = ("false", "true")
_CODECS = (*COMPRESSION_NAMES, "unknown")

# The columns of view `batches` that a line has, by the tool's names.
_NUMBERS_OF_BATCHES = {
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "count": "records",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "deleteHorizonMs": "delete_horizon_ms",
    "position": "position",
    "maxTimestamp": "max_timestamp_ms",
    "size": "size",
    "magic": "magic",
    "crc": "crc",
    "isvalid": "is_valid",
}
_WORDS: dict[str, Sequence[str]] = {
    "isTransactional": _FLAGS,
    "isControl": _FLAGS,
    "timestampType": TIMESTAMP_TYPES,
    "compresscodec": _CODECS,
    "isvalid": _FLAGS,
}
_OPTIONAL = ("baseOffset", "count", "deleteHorizonMs")
_BATCH_FIELDS = (
    *("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId"),
    *("producerEpoch", "partitionLeaderEpoch", "isTransactional", "isControl", "deleteHorizonMs"),
    *("position", "timestampType", "maxTimestamp", "size", "magic", "compresscodec", "crc"),
    "isvalid",
)
BATCH_CSV = ("topic", "partition", "file", *_BATCH_FIELDS)


@dataclass(frozen=True)
class DumpedFile:
    """The part that all lines of a file share."""

    path: str
    topic: str | None
    partition: int | None

    def in_front(self, kind: str, text_format: LineFormat) -> str:
        """Return the beginning of a line."""
        if text_format is LineFormat.TEXT:
            return ""
        if text_format is LineFormat.JSON:
            known = {"type": kind, "topic": self.topic, "partition": self.partition}
            encoded = json.dumps({**known, "file": ""}, separators=(",", ":"))
            return f'{encoded[:-2]}{escaped_text(self.path, text_format)}"'
        partition = "" if self.partition is None else self.partition
        topic = escaped_text(self.topic or "", text_format)
        return f'"{topic}",{partition},"{escaped_text(self.path, text_format)}"'


def numbers_of(array: pa.Array) -> LongArray:
    """Return the integers or booleans of a column, NO_VALUE for null.

    Not by Arrow's own functions: to import them takes a tenth of the start-up.
    """
    values = booleans(array) if pa.types.is_boolean(array.type) else integers(array)
    if not array.null_count:
        return values.astype(np.int64, copy=False)
    return np.where(present(array), values, NO_VALUE)


def with_fields(template: Template, names: Sequence[str], text_format: LineFormat) -> Template:
    """Return the fields in JSON or CSV, a separator before each."""
    for name in names:
        label = f',"{name}":' if text_format is LineFormat.JSON else ","
        quote = '"' if text_format is LineFormat.JSON else ""
        if name in _OPTIONAL:
            template.text(label)
            template.only_if(f"has {name}", Template().number(name))
            if quote:
                template.only_if(f"no {name}", Template().text("null"))
        elif name in _WORDS:
            is_flag = _WORDS[name] is _FLAGS
            words = _WORDS[name] if is_flag else [quote + word + quote for word in _WORDS[name]]
            template.word(name, words, label)
        else:
            template.number(name, label)
    return template


class BatchLines:
    """Rows of batch tables as lines, one for each batch."""

    def __init__(self, file: DumpedFile, text_format: LineFormat) -> None:
        self._template = Template().text(file.in_front("batch", text_format))
        self._columns = BatchColumns(tuple(_NUMBERS_OF_BATCHES.values()), {})
        if text_format is LineFormat.TEXT:
            _batch_text(self._template)
        else:
            with_fields(self._template, _BATCH_FIELDS, text_format)
            self._template.text("}\n" if text_format is LineFormat.JSON else "\n")

    def lines(self, table: LongArray) -> ByteColumn:
        """Return the lines of those rows that are batches."""
        batches = table[table[:, column.IS_BATCH] == 1]
        found = self._columns.batch(batches)
        if found is None:
            return of_texts([])
        numbers: dict[str, NDArray[Any]] = {
            name: numbers_of(found.column(source)) for name, source in _NUMBERS_OF_BATCHES.items()
        }
        for name in _OPTIONAL:
            is_there = present(found.column(_NUMBERS_OF_BATCHES[name]))
            numbers[f"no {name}"], numbers[f"has {name}"] = ~is_there, is_there
        numbers["isvalid"] = np.maximum(numbers["isvalid"], 0)
        attributes = batches[:, column.ATTRIBUTES]
        numbers["compresscodec"] = np.minimum(attributes & COMPRESSION_BITS, len(_CODECS) - 1)
        is_append_time = (attributes & LOG_APPEND_TIME_BIT != 0).astype(np.int64)
        numbers["timestampType"] = np.where(batches[:, column.MAGIC] == 0, 0, 1 + is_append_time)
        numbers["isV2"] = (batches[:, column.MAGIC] == 2).astype(np.int64)
        numbers["isOld"] = 1 - numbers["isV2"]
        return self._template.lines(len(batches), numbers, {})


def _batch_text(template: Template) -> None:
    """A batch as the tool prints it, of format 2 and of the old ones."""
    header = Template()
    for name in _BATCH_FIELDS[: _BATCH_FIELDS.index("deleteHorizonMs")]:
        separator = "" if name == "baseOffset" else " "
        if name in _WORDS:
            header.word(name, _WORDS[name], f"{separator}{name}: ")
        else:
            header.number(name, f"{separator}{name}: ")
    header.word("no deleteHorizonMs", ("[", ".empty"), " deleteHorizonMs: OptionalLong")
    header.only_if("has deleteHorizonMs", Template().number("deleteHorizonMs").text("]"))
    template.only_if("isV2", header)
    template.only_if("isOld", Template().number("lastOffset", "offset: "))
    template.number("position", " position: ")
    template.word("timestampType", TIMESTAMP_TYPES, " ").number("maxTimestamp", ": ")
    template.number("size", " size: ").number("magic", " magic: ")
    template.word("compresscodec", _CODECS, " compresscodec: ")
    template.number("crc", " crc: ").word("isvalid", _FLAGS, " isvalid: ").text("\n")
