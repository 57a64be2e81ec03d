"""Values in JSON, and text, as Arrow's arrays of a type. A value that is not of it as a whole is
null, and a text says why. Rules: docs/format.md F291 and F292; docs/decoding.md F1273."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import json as pajson

Payloads = Sequence[bytes | None]
# An array with a row for each payload, and why a payload has no value, None where it has one.
Decoded = tuple[pa.Array, list[str | None]]
NOT_UTF8, NOT_JSON = "not UTF-8", "not JSON"
_FIELD = "decoded"
_SPACES_FOR_LINES = bytes(0x20 if code in b"\r\n" else code for code in range(256))
# What Arrow raises for values that are not of the type.
_REFUSED = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    UnicodeDecodeError,
    OverflowError,
    ValueError,
    RecursionError,
)


def text_values(payloads: Payloads) -> Decoded:
    """Return payloads as text."""
    return in_halves(
        lambda some: pa.array([None if each is None else each.decode() for each in some]),
        lambda payload: None if _is_utf8(payload) else NOT_UTF8,
        NOT_UTF8,
        payloads,
        pa.string(),
    )


def json_values(payloads: Payloads, data_type: pa.DataType, misfit: str) -> Decoded:
    """Return payloads of one JSON value each; `misfit` is said of JSON that has another type.

    A text takes what is not a text as its JSON.
    """
    fit = _fitted_to(data_type)
    has_maps = _has_maps(data_type)

    def read(some: Payloads) -> pa.Array:
        if has_maps:
            some = [None if each is None else fit(each) for each in some]
        return _read(some, data_type)

    sound = lambda payload: None if _is_json(payload) else NOT_JSON  # noqa: E731
    return in_halves(read, sound, misfit, payloads, data_type, None if has_maps else fit)


def in_halves(
    read: Callable[[Payloads], pa.Array],
    fault_of: Callable[[bytes | None], str | None],
    misfit: str,
    payloads: Payloads,
    data_type: pa.DataType,
    fitted: Callable[[bytes], bytes] | None = None,
) -> Decoded:
    """Read payloads at once or, where one of them cannot be, without those that have a fault, and
    then in halves. What cannot be read alone is `fitted`, or a misfit."""
    arrays: list[pa.Array] = []
    errors: list[str | None] = [None] * len(payloads)

    def part(some: Payloads, first: int, *, is_sound: bool) -> None:
        if not some:
            return
        try:
            arrays.append(read(some).cast(data_type))
            return
        except _REFUSED:
            faults = [None] * len(some) if is_sound else [fault_of(each) for each in some]
        if any(faults):
            errors[first : first + len(some)] = faults
            sound = [None if fault else each for each, fault in zip(some, faults, strict=True)]
            part(sound, first, is_sound=True)
        elif len(some) > 1:
            half = len(some) // 2
            part(some[:half], first, is_sound=True)
            part(some[half:], first + half, is_sound=True)
        else:
            arrays.append(alone(some[0], first))

    def alone(payload: bytes | None, place: int) -> pa.Array:
        if fitted is not None and payload is not None:
            try:
                return read([fitted(payload)]).cast(data_type)
            except _REFUSED:
                pass
        errors[place] = misfit
        return pa.nulls(1, data_type)

    part(payloads, 0, is_sound=False)
    whole = pa.chunked_array(arrays, data_type).combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks), errors


def _read(payloads: Payloads, data_type: pa.DataType) -> pa.Array:
    # A line holds one row: ends of lines in JSON are white space. What is not one whole value
    # fits either into the object or into the list, but not into both.
    texts = [b"null" if each is None else each.translate(_SPACES_FOR_LINES) for each in payloads]
    lines = b"\n".join(b'{"%b":%b,"":[%b]}' % (_FIELD.encode(), each, each) for each in texts)
    table = pajson.read_json(
        pa.BufferReader(lines),
        # Without threads, which a fork does not have.
        pajson.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pajson.ParseOptions(
            explicit_schema=pa.schema([pa.field(_FIELD, _readable(data_type))]),
            unexpected_field_behavior="ignore",
        ),
    )
    if len(table) != len(payloads):
        raise pa.ArrowInvalid("not a value for each row")
    found = table.column(_FIELD).combine_chunks()
    whole = found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
    return _shaped(whole, data_type)


def _shaped(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return what has been read as `_readable` as the type itself."""
    if pa.types.is_struct(data_type):
        parts = [_shaped(array.field(place), each.type) for place, each in enumerate(data_type)]
        return pa.StructArray.from_arrays(parts, fields=list(data_type), mask=array.is_null())
    if pa.types.is_list(data_type):
        values = _shaped(array.values, data_type.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, data_type, mask=array.is_null())
    if pa.types.is_map(data_type):
        items = _shaped(array.values.field(1), data_type.item_type)
        keys = array.values.field(0)
        return pa.MapArray.from_arrays(
            array.offsets, keys, items, type=data_type, mask=array.is_null()
        )
    return array.cast(data_type)


def _readable(data_type: pa.DataType) -> pa.DataType:
    """Return a type with texts in the places of dates, which Arrow's reader of JSON has as numbers.
    Maps are lists of pairs."""
    if pa.types.is_date(data_type):
        return pa.string()
    if pa.types.is_map(data_type):
        pair = [("key", pa.string()), ("value", _readable(data_type.item_type))]
        return pa.list_(pa.struct(pair))
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_readable(data_type.value_type)))
    if pa.types.is_struct(data_type):
        return pa.struct([each.with_type(_readable(each.type)) for each in data_type])
    return data_type


def _fitted_to(data_type: pa.DataType) -> Callable[[bytes], bytes]:
    return lambda payload: json.dumps(_fit(json.loads(payload), data_type)).encode()


def _fit(value: Any, data_type: pa.DataType) -> Any:
    """Return a value with the JSON of what is not a text in the places of texts."""
    if pa.types.is_string(data_type) and value is not None and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if pa.types.is_list(data_type) and isinstance(value, list):
        return [_fit(each, data_type.value_type) for each in value]
    if pa.types.is_struct(data_type) and isinstance(value, dict):
        return {
            each.name: _fit(value[each.name], each.type) for each in data_type if each.name in value
        }
    if pa.types.is_map(data_type) and isinstance(value, dict):
        items = [(name, _fit(each, data_type.item_type)) for name, each in value.items()]
        return [{"key": name, "value": each} for name, each in items]
    return value


def _has_maps(data_type: pa.DataType) -> bool:
    if pa.types.is_map(data_type):
        return True
    if pa.types.is_list(data_type):
        return _has_maps(data_type.value_type)
    return pa.types.is_struct(data_type) and any(_has_maps(each.type) for each in data_type)


def _is_utf8(payload: bytes | None) -> bool:
    try:
        return payload is None or payload.decode() is not None
    except UnicodeDecodeError:
        return False


def _is_json(payload: bytes | None) -> bool:
    try:
        text = None if payload is None else payload.decode()
        if text is not None:
            json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return True


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
