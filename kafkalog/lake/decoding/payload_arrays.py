"""Payloads of a column as arrays: the value, why there is none, and the schema id, with the words
that Spark's half has (kafkalog/spark/decoding). Rules: docs/format.md F285, F286, F291 to F293."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_type
from kafkalog.lake.decoding.avro_reader import AvroReader, NotAvroError
from kafkalog.lake.decoding.json_values import (
    Decoded,
    Payloads,
    in_halves,
    json_values,
    text_values,
)
from kafkalog.lake.decoding.protobuf_reader import NotProtobufError, ProtobufReader
from kafkalog.messages.payload_formats import (
    ID_PREFIX_BYTES,
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    Magic,
    PayloadFormat,
    ProtobufFormat,
    SchemaFormat,
    TextFormat,
)

_HEADERS = "headers"
_NOT_AVRO = "not Avro of the schema"
_OTHER_JSON = "JSON, but not of the schema"


class PayloadDecoder:
    """Decodes the payloads of one column, key or value."""

    def __init__(
        self, column: str, payload_format: PayloadFormat, misfit: str = _OTHER_JSON
    ) -> None:
        """`misfit` is said of JSON that has another type. Raises SchemaError for a schema that
        cannot be used."""
        self._misfit = misfit
        self.column = column
        self._format = payload_format
        if isinstance(payload_format, ConfluentFormat):
            self._by_id = {use.schema_id: use for use in payload_format.uses}
            self._refused = payload_format.refused
            formats = [use.format for use in payload_format.uses]
        else:
            self._by_id, self._refused = {}, {}
            formats = [payload_format]
        self._readers = {
            each: _reader(each) for each in formats if isinstance(each, AvroFormat | ProtobufFormat)
        }
        self.spark_type = self._spark_type(formats[0])
        self._type = arrow_type(self.spark_type)

    @property
    def types(self) -> dict[str, Any]:
        """The added columns with their types, in the JSON form of Spark's types."""
        facts = {"decoded": self.spark_type, "error": "string"}
        if isinstance(self._format, ConfluentFormat):
            facts["schema_id"] = "integer"
        return {f"{self.column}_{fact}": spark_type for fact, spark_type in facts.items()}

    def arrays(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns that are added to rows, in the order of `types`. Column `headers` is
        looked at where the rows have it."""
        payloads = rows.column(self.column).to_pylist()
        if not isinstance(self._format, ConfluentFormat):
            values, errors = self._decoded(self._format, payloads)
            return [values, pa.array(errors, pa.string())]
        ids = [schema_id(each) for each in payloads]
        faults = [self._prefix_fault(*each) for each in zip(payloads, ids, strict=True)]
        for place in _places_with_header(rows, f"__{self.column}_schema_id"):
            if payloads[place] is not None:
                name = f"__{self.column}_schema_id"
                faults[place] = f"its schema's GUID is in header {name}, which is not read yet"
        values, errors = self._by_their_ids(payloads, ids, faults)
        return [values, pa.array(errors, pa.string()), pa.array(ids, pa.int32())]

    def with_decoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the added columns."""
        for name, array in zip(self.types, self.arrays(rows), strict=True):
            rows = rows.append_column(name, array)
        return rows

    def _spark_type(self, found: SchemaFormat) -> Any:
        if isinstance(found, JsonFormat):
            return json.loads(found.type_json)
        return self._readers[found].spark_type if found in self._readers else "string"

    def _decoded(self, found: SchemaFormat, payloads: Payloads) -> Decoded:
        match found:
            case TextFormat():
                return text_values(payloads)
            case JsonFormat():
                return json_values(payloads, self._type, self._misfit)
            case AvroFormat(is_raw=True):
                return pa.array(payloads, self._type), [None] * len(payloads)
            case AvroFormat():
                return self._read(self._readers[found], _NOT_AVRO, payloads)
            case ProtobufFormat(message):
                said = f"not Protobuf of message {message}"
                return self._read(self._readers[found], said, payloads)

    def _read(
        self, reader: AvroReader | ProtobufReader, misfit: str, payloads: Payloads
    ) -> Decoded:
        values: list[Any] = [None] * len(payloads)
        errors: list[str | None] = [None] * len(payloads)
        for place, payload in enumerate(payloads):
            if payload is not None:
                try:
                    values[place] = reader.value(payload)
                except (NotAvroError, NotProtobufError):
                    errors[place] = misfit
        array, misfits = in_halves(
            lambda some: pa.array(some, self._type), lambda value: None, misfit, values, self._type
        )
        return array, [one or other for one, other in zip(errors, misfits, strict=True)]

    def _by_their_ids(
        self, payloads: Payloads, ids: list[int | None], faults: list[str | None]
    ) -> Decoded:
        """Decode the payloads without a fault, those of one format together."""
        places: defaultdict[tuple[SchemaFormat, int], list[int]] = defaultdict(list)
        for place, (found, fault) in enumerate(zip(ids, faults, strict=True)):
            if found is not None and fault is None:
                use = self._by_id[found]
                places[use.format, ID_PREFIX_BYTES + len(use.opening)].append(place)
        arrays, order = [pa.nulls(1, self._type)], [0] * len(payloads)
        done = 1
        for (schema_format, begin), some in places.items():
            bodies = [(payloads[place] or b"")[begin:] for place in some]
            array, errors = self._decoded(schema_format, bodies)
            arrays.append(array)
            for place, error in zip(some, errors, strict=True):
                order[place] = done
                done += 1
                faults[place] = error and f"schema id {ids[place]}: {error}"
        whole = pa.concat_arrays([each.cast(self._type) for each in arrays])
        return whole.take(pa.array(order, pa.int64())), faults

    def _prefix_fault(self, payload: bytes | None, found: int | None) -> str | None:
        if payload is None:
            return None
        if found is None:
            return _no_id(payload)
        if found in self._by_id:
            opening = self._by_id[found].opening
            if payload.startswith(opening, ID_PREFIX_BYTES):
                return None
            return f"schema id {found}: its message indexes lead to another message"
        assert isinstance(self._format, ConfluentFormat)  # noqa: S101
        return (
            f"schema id {found}: {self._format.refused.get(found, 'its schema is not in _schemas')}"
        )


def _reader(found: AvroFormat | ProtobufFormat) -> AvroReader | ProtobufReader:
    if isinstance(found, AvroFormat):
        return AvroReader(found.writer, found.reader)
    return ProtobufReader(found.message, found.descriptor)


def schema_id(payload: bytes | None) -> int | None:
    """Return the schema id in Confluent's prefix, None where there is none."""
    if payload is None or len(payload) < ID_PREFIX_BYTES or payload[0] != Magic.SCHEMA_ID:
        return None
    return int.from_bytes(payload[1:ID_PREFIX_BYTES], "big", signed=True)


def _no_id(payload: bytes) -> str:
    if not payload:
        return "empty, without a schema id"
    if payload[0] == Magic.SCHEMA_GUID:
        return "a schema's GUID in place of its id, which is not read yet"
    if payload[0] != Magic.SCHEMA_ID:
        return f"not a schema id: the first byte is {payload[0]:02X}, not 00"
    return f"{len(payload)} bytes, shorter than a schema id's prefix"


def _places_with_header(rows: pa.RecordBatch, name: str) -> Iterable[int]:
    if _HEADERS not in rows.schema.names:
        return ()
    headers = rows.column(_HEADERS)
    is_named = pc.equal(pc.struct_field(pc.list_flatten(headers), "key"), name)
    if not pc.any(is_named).as_py():
        return ()
    return set(pc.filter(pc.list_parent_indices(headers), is_named).to_pylist())
