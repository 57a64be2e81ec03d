"""Values of records as columns of Arrow's types, by the format that they have.

JSON is read by Arrow's reader, into the fields that a sample of the values shows. A value that is
not JSON, or that has another type in one of these fields, is null, and a text says why. Rules:
docs/format.md F291 and F292.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import json as pajson

from kafkalog.columns.arrow_types import arrow_type

VALUE, DECODED, ERROR = "value", "value_decoded", "value_error"
VALUE_FORMATS = ("json", "text")
_FIELD = "decoded"
# Null, in the JSON form of Spark's types: what a sample without any value shows.
_NOTHING = "void"


@dataclass(frozen=True, slots=True)
class DecodedType:
    """What values become: `type` is that of column value_decoded."""

    value_format: str
    type: pa.DataType

    @property
    def fields(self) -> list[pa.Field]:
        """The columns that are added."""
        return [pa.field(DECODED, self.type), pa.field(ERROR, pa.string())]

    def with_decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with a column value with the two columns added."""
        values = batch.column(VALUE).to_pylist()
        decoded: list[pa.Array] = []
        errors: list[str | None] = [None] * len(values)
        read = self._json if self.value_format == "json" else self._text
        self._decode(read, values, 0, decoded, errors)
        arrays = pa.chunked_array(decoded, self.type).combine_chunks()
        column = arrays if isinstance(arrays, pa.Array) else pa.concat_arrays(arrays.chunks)
        both = [column, pa.array(errors, pa.string())]
        for field, array in zip(self.fields, both, strict=True):
            batch = batch.append_column(field, array)
        return batch

    def _decode(
        self,
        read: Callable[[Sequence[bytes | None]], pa.Array],
        values: Sequence[bytes | None],
        first: int,
        decoded: list[pa.Array],
        errors: list[str | None],
    ) -> None:
        """Decode values at once or, where one of them cannot be, in halves."""
        if not values:
            return
        try:
            decoded.append(read(values))
            return
        except (pa.ArrowInvalid, UnicodeDecodeError):
            faults = [self._fault(value) for value in values]
        if any(faults) and len(values) > 1:
            errors[first : first + len(values)] = faults
            sound = [None if fault else value for value, fault in zip(values, faults, strict=True)]
            self._decode(read, sound, first, decoded, errors)
        elif len(values) > 1:
            half = len(values) // 2
            self._decode(read, values[:half], first, decoded, errors)
            self._decode(read, values[half:], first + half, decoded, errors)
        else:
            errors[first] = faults[0] or "JSON, but not of the fields that a sample shows"
            decoded.append(pa.nulls(1, self.type))

    def _json(self, values: Sequence[bytes | None]) -> pa.Array:
        # A line holds one row: ends of lines in JSON are white space. What is not one whole value
        # fits either into the object or into the list, but not into both.
        texts = [
            b"null" if value is None else value.translate(_SPACES_FOR_LINES) for value in values
        ]
        lines = b"\n".join(b'{"%b":%b,"":[%b]}' % (_FIELD.encode(), each, each) for each in texts)
        schema = pa.schema([pa.field(_FIELD, self.type)])
        table = pajson.read_json(
            pa.BufferReader(lines),
            # Without threads, which a fork does not have.
            pajson.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(values):
            raise pa.ArrowInvalid("not a value for each row")
        found = table.column(_FIELD).combine_chunks()
        return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)

    def _text(self, values: Sequence[bytes | None]) -> pa.Array:
        texts = [None if value is None else value.decode() for value in values]
        return pa.array(texts, self.type)

    def _fault(self, value: bytes | None) -> str | None:
        """Return why a value is not of the format at all, None if it is."""
        try:
            text = None if value is None else value.decode()
            if text is not None and self.value_format == "json":
                json.loads(text, parse_constant=_refused)
        except UnicodeDecodeError:
            return "not UTF-8"
        except (ValueError, RecursionError):
            return "not JSON"
        return None


_SPACES_FOR_LINES = bytes(0x20 if code in b"\r\n" else code for code in range(256))


def decoded_type(value_format: str, sample: Iterable[bytes | None]) -> DecodedType:
    """Return what values become, by a sample of them. A field whose values in the sample have
    types that no type holds is left out."""
    if value_format == "text":
        return DecodedType(value_format, pa.string())
    found: Any = _NOTHING
    for value in sample:
        try:
            found = _merged(found, _json_type(json.loads(value or b"null")))
        except (ValueError, RecursionError):
            continue
    spark_type = _known(found)
    return DecodedType(value_format, pa.string() if spark_type is None else arrow_type(spark_type))


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _json_type(value: Any) -> Any:
    """Return the type of a value of JSON in the JSON form of Spark's types."""
    if isinstance(value, dict):
        fields = [_field(name, _json_type(each)) for name, each in value.items()]
        return {"type": "struct", "fields": fields}
    if isinstance(value, list):
        element: Any = _NOTHING
        for each in value:
            element = _merged(element, _json_type(each))
        return {"type": "array", "elementType": element, "containsNull": True}
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if -(2**63) <= value < 2**63 else _MIXED
    return "double" if isinstance(value, float) else "string"


_MIXED = "mixed"


def _field(name: str, spark_type: Any) -> dict[str, Any]:
    return {"name": name, "type": spark_type, "nullable": True, "metadata": {}}


def _merged(ours: Any, theirs: Any) -> Any:
    """Return a type that holds the values of both, _MIXED where there is none."""
    if _NOTHING in (ours, theirs):
        return theirs if ours == _NOTHING else ours
    kinds = [each if isinstance(each, str) else each["type"] for each in (ours, theirs)]
    if kinds == ["struct", "struct"]:
        of_both = {each["name"]: each["type"] for each in ours["fields"]}
        for each in theirs["fields"]:
            name = each["name"]
            of_both[name] = _merged(of_both.get(name, _NOTHING), each["type"])
        return {**ours, "fields": [_field(name, kind) for name, kind in of_both.items()]}
    if kinds == ["array", "array"]:
        return {**ours, "elementType": _merged(ours["elementType"], theirs["elementType"])}
    if set(kinds) == {"long", "double"}:
        return "double"
    return ours if ours == theirs else _MIXED


def _known(spark_type: Any) -> Any:
    """Return a type without the fields of which no value or no one type is known, None if nothing
    is left."""
    if isinstance(spark_type, str):
        return None if spark_type in (_NOTHING, _MIXED) else spark_type
    if spark_type["type"] == "array":
        element = _known(spark_type["elementType"])
        return None if element is None else {**spark_type, "elementType": element}
    fields = [(each["name"], _known(each["type"])) for each in spark_type["fields"]]
    known = [_field(name, kind) for name, kind in fields if kind is not None]
    return {**spark_type, "fields": known} if known else None
