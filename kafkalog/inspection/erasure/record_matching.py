"""Which records of an Arrow batch are a person's. Rules: docs/erasure.md F1106 to F1109."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import integers
from kafkalog.columns.jit.compiled import BoolArray
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.plain_bytes import spellings
from kafkalog.inspection.erasure.value_paths import ValuePath, is_value, number_of

# Decodes a value into what JSON has: objects, lists, texts, numbers. Raises ValueError for one that
# it cannot decode.
Decoder = Callable[[bytes], Any]
# How a JSON value, or white space before one, begins.
_JSON_STARTS = pa.array([bytes([each]) for each in b'{["-0123456789tfn \t\r\n'], pa.binary())
_BACKSLASH = b"\\"
# Of a number that is not written as a plain one, such as 1.7e1.
_EXPONENT = r"[0-9][eE][-+]?[0-9]"


class RecordMatcher:
    """Finds the records of some identifiers. `decoders` are for values that are not JSON: the first
    one that can decode a value counts.

    `undecoded` counts the values in which something is looked for at a path and that nothing
    decodes.
    """

    def __init__(self, identifiers: Sequence[Identifier], decoders: Sequence[Decoder] = ()) -> None:
        self._keys = pa.array(sorted(_values(identifiers, Kind.KEY)), pa.binary())
        self._headers = {(each.name, each.value) for each in _of(identifiers, Kind.HEADER)}
        self._texts = sorted(_values(identifiers, Kind.TEXT))
        self._spellings = sorted({each for text in self._texts for each in spellings(text)})
        self._paths: dict[str, set[str]] = {}
        for each in _of(identifiers, Kind.VALUE_PATH):
            self._paths.setdefault(each.name, set()).add(each.value.decode())
        self._decoders = decoders
        self.undecoded = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        names = ["key"] if len(self._keys) or self._texts else []
        names += ["value"]
        return (*names, "headers") if self._headers or self._texts else (*names,)

    def matches(self, records: pa.RecordBatch) -> BoolArray:
        """Return which records are a person's: bool, one for each."""
        found = np.zeros(len(records), dtype=np.bool_)
        if len(self._keys):
            found |= _bools(pc.is_in(records.column("key"), value_set=self._keys))
        if self._headers:
            found |= self._with_headers(records.column("headers"))
        for text in self._spellings:
            found |= _with_text(records, text)
        if self._paths:
            found |= self._with_values(records.column("value"))
        return found

    def _with_headers(self, column: pa.Array) -> BoolArray:
        found = np.zeros(len(column), dtype=np.bool_)
        inner = pc.list_flatten(column)
        if not len(inner):
            return found
        names, values = pc.struct_field(inner, "key"), pc.struct_field(inner, "value")
        rows = integers(pc.list_parent_indices(column).cast(pa.int64()))
        for name, value in self._headers:
            is_one = pc.and_(
                pc.equal(names, pa.scalar(name)), pc.equal(values, pa.scalar(value, pa.binary()))
            )
            found[rows[_bools(is_one)]] = True
        return found

    def _with_values(self, column: pa.Array) -> BoolArray:
        found = np.zeros(len(column), dtype=np.bool_)
        is_json = _like_json(column)
        is_given = _bools(pc.is_valid(column))
        candidates = is_given & self._possible(column)
        others = is_given & ~is_json
        if not self._decoders:
            self.undecoded += int(others.sum())
            candidates &= is_json
        else:
            # How the others are encoded is known only from each of them.
            candidates |= others
        for row in np.flatnonzero(candidates).tolist():
            found[row] = self._has_value(column[row].as_py())
        return found

    def _texts_of_paths(self) -> Iterable[str]:
        return (text for texts in self._paths.values() for text in texts)

    def _possible(self, column: pa.Array) -> BoolArray:
        """Return which JSON values can have one of the texts somewhere: as it is, with escapes, or
        as a number that is written with an exponent."""
        possible = np.zeros(len(column), dtype=np.bool_)
        texts = {*self._texts_of_paths()}
        numbers = {text for text in texts if number_of(text) is not None}
        plain = (texts - numbers) | {_digits(text) for text in numbers}
        for text in {_BACKSLASH, *(each.encode() for each in plain)}:
            possible |= _bools(pc.match_substring(column, text))
        if numbers:
            possible |= _bools(pc.match_substring_regex(column, _EXPONENT))
        return possible

    def _has_value(self, data: bytes) -> bool:
        for decoder in (json.loads, *self._decoders):
            try:
                decoded = decoder(data)
            except (ValueError, RecursionError):
                continue
            return any(
                is_value(each, text)
                for path, texts in self._paths.items()
                for each in ValuePath.of(path).values(decoded)
                for text in texts
            )
        self.undecoded += 1
        return False


def _of(identifiers: Sequence[Identifier], kind: Kind) -> list[Identifier]:
    return [each for each in identifiers if each.kind is kind]


def _values(identifiers: Sequence[Identifier], kind: Kind) -> set[bytes]:
    return {each.value for each in _of(identifiers, kind)}


def _bools(mask: pa.Array) -> BoolArray:
    """Return a mask, false where it is null."""
    filled: BoolArray = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return filled


def _like_json(column: pa.Array) -> BoolArray:
    """Return which values can be JSON in UTF-8: by how they begin, and as they are text. What is
    compressed or encoded otherwise may begin like JSON by chance."""
    like = _bools(pc.is_in(pc.binary_slice(column, 0, 1), value_set=_JSON_STARTS))
    like &= ~_bools(pc.match_substring(column, b"\0"))
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        for row in np.flatnonzero(like).tolist():
            like[row] = _is_utf8(column[row].as_py())
    return like


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _digits(number: str) -> str:
    """Return what a JSON number without an exponent has in it if it equals this one."""
    return format(Decimal(number).normalize().copy_abs(), "f")


def _with_text(records: pa.RecordBatch, text: bytes) -> BoolArray:
    """Return which records have the text in the key, the value or a header."""
    found = _bools(pc.match_substring(records.column("key"), text))
    found |= _bools(pc.match_substring(records.column("value"), text))
    headers = records.column("headers")
    inner = pc.list_flatten(headers)
    if len(inner):
        is_in = _bools(pc.match_substring(pc.struct_field(inner, "key").cast(pa.binary()), text))
        is_in |= _bools(pc.match_substring(pc.struct_field(inner, "value"), text))
        rows = integers(pc.list_parent_indices(headers).cast(pa.int64()))
        found[rows[is_in]] = True
    return found


def everywhere(identifiers: Sequence[Identifier]) -> list[Identifier]:
    """Return the identifiers' values as texts: for topics whose keys and values are Kafka's own."""
    return [Identifier(Kind.TEXT, value) for value in sorted({each.value for each in identifiers})
            if value]  # fmt: skip
