"""Which records of an Arrow batch are a person's. Rules: docs/erasure.md F1106 to F1109."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import binaries, integers
from kafkalog.columns.jit.compiled import BoolArray, ByteArray, LongArray
from kafkalog.inspection.erasure.byte_search import ByteColumn, ByteRows, mark_plain_rows
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.plain_bytes import LEAST_BYTES, spellings
from kafkalog.inspection.erasure.value_paths import ValuePath, decoded_value, is_value, number_of
from kafkalog.messages.payload_formats import ID_PREFIX_BYTES, Magic


class Texts(Enum):
    """How payloads of a schema have texts in them: as bytes in UTF-8, as JSON writes them, or in a
    way that only decoding shows."""

    PLAIN = "plain"
    IN_JSON = "in JSON"
    HIDDEN = "hidden"


class Decoder(Protocol):
    """Decodes payloads into what JSON has: objects, lists, texts, numbers."""

    def __call__(self, data: bytes) -> Any:
        """Return a payload's value. Raises ValueError for one that it cannot decode."""

    def texts_in(self, schema_id: int, texts: Collection[str]) -> Texts | None:
        """Return how payloads of a schema have these texts; None where the schema is not known, so
        that nothing decodes them."""

    def hides(self, texts: Collection[str]) -> bool:
        """Return whether payloads of any of its schemas can have one of these texts hidden."""


# How a JSON value, or white space before one, begins: a flag for each byte.
_STARTS_JSON = np.isin(np.arange(256), [*b'{["-0123456789tfn \t\r\n'])
# A text of JSON can have any character as \\u and digits, and these ones in a shorter way.
_ESCAPE, _LONG_ESCAPE = b"\\", b"\\u"
_ESCAPED = re.compile(r'["\\/\x00-\x1f]')
# Each of so many keys is also looked for in longer keys, and in values.
_MOST_PARTS = 500
# Of a value in a column.
_MOST_BYTES = 2**31 - 1
# The texts that are looked for at each path.
_Paths = Mapping[ValuePath, set[str]]
# Of a number that is not written as a plain one, such as 1.7e1.
_EXPONENT = r"[0-9][eE][-+]?[0-9]"


class TextSieve:
    """Picks the payloads that have one of some texts; of the records in others `columns` are still
    to be looked at."""

    def __init__(self, texts: Iterable[bytes], columns: Sequence[str]) -> None:
        self._texts = sorted(set(texts))
        self.columns = columns

    def chosen(self, source: ByteArray, begins: LongArray, ends: LongArray) -> BoolArray:
        """Return which of the payloads source[begin:end] have one."""
        rows = ByteRows(source, begins, ends)
        found = np.zeros(len(begins), dtype=np.bool_)
        for text in self._texts:
            found |= rows.with_text(text)
        return found


class RecordMatcher:
    """Finds the records of some identifiers. `decoders` are for values that are not JSON: the first
    one that can decode a value counts.

    `undecoded` counts the values in which something is looked for at a path and that nothing
    decodes, `elsewhere` the records that are not found although the bytes of a key are in a longer
    key, or in the value.
    """

    def __init__(self, identifiers: Sequence[Identifier], decoders: Sequence[Decoder] = ()) -> None:
        self._keys = pa.array(sorted(_values(identifiers, Kind.KEY)), pa.binary())
        self._headers = {(each.name, each.value) for each in _of(identifiers, Kind.HEADER)}
        self._texts = sorted(_values(identifiers, Kind.TEXT))
        self._spellings = sorted({each for text in self._texts for each in spellings(text)})
        self._value_paths = _paths(identifiers, Kind.VALUE_PATH)
        self._key_paths = _paths(identifiers, Kind.KEY_PATH)
        # Serializers of a registry put the schema's id before a key.
        whole_keys = _texts(_values(identifiers, Kind.KEY)) if decoders else set()
        self._whole_keys = {ValuePath.of("$"): whole_keys} if whole_keys else {}
        self._decoders = decoders
        whole = [each for each in _values(identifiers, Kind.KEY) if len(each) >= LEAST_BYTES]
        self._parts = sorted(whole) if len(whole) <= _MOST_PARTS else []
        self.undecoded = 0
        self.elsewhere = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        names = ["key"] if len(self._keys) or self._texts or self._key_paths else []
        names += ["value"]
        return (*names, "headers") if self._headers or self._texts else (*names,)

    @property
    def sieve(self) -> TextSieve | None:
        """What picks the payloads that can have a record of which `matches` says anything; None
        where what is looked for can be written in too many ways. Give the other records to
        `pass_over`."""
        paths = {"key": self._key_paths, "value": self._value_paths}
        at_paths = {text for each in paths.values() for texts in each.values() for text in texts}
        whole = {*self._keys.to_pylist(), *(value for _, value in self._headers)}
        decoded = at_paths.union(*self._whole_keys.values())
        is_hidden = any(number_of(text) is not None for text in at_paths) or (
            bool(self._decoders) and _is_any_hidden(self._decoders, decoded)
        )
        if is_hidden or len(whole) > _MOST_PARTS:
            return None
        columns = [name for name, each in paths.items() if each]
        return TextSieve({*whole, *self._spellings, *_written_in_json(decoded)}, columns)

    def pass_over(self, records: pa.RecordBatch) -> None:
        """Count what cannot be decoded in records of payloads that the sieve has not picked."""
        for name, paths in (("key", self._key_paths), ("value", self._value_paths)):
            if paths:
                column = records.column(name)
                others = _bools(pc.is_valid(column)) & ~_like_json(column)
                self.undecoded += int((others & ~self._shows_texts(column, others, paths)).sum())

    def matches(self, records: pa.RecordBatch) -> BoolArray:
        """Return which records are a person's: bool, one for each."""
        found = np.zeros(len(records), dtype=np.bool_)
        if len(self._keys):
            found |= _bools(pc.is_in(records.column("key"), value_set=self._keys))
        if self._headers:
            found |= self._with_headers(records.column("headers"))
        if self._spellings:
            found |= _with_texts(records, self._spellings)
        if self._value_paths:
            found |= self._at_paths(records.column("value"), self._value_paths)
        if self._key_paths:
            found |= self._at_paths(records.column("key"), self._key_paths)
        if self._whole_keys:
            undecoded = self.undecoded
            found |= self._at_paths(records.column("key"), self._whole_keys)
            # Keys may be encoded in any way, as long as nothing is looked for inside them.
            self.undecoded = undecoded
        if self._parts:
            self.elsewhere += self._parts_elsewhere(records, found)
        return found

    def _parts_elsewhere(self, records: pa.RecordBatch, found: BoolArray) -> int:
        columns = [ByteColumn(records.column(name)) for name in ("key", "value")]
        named = np.zeros(len(records), dtype=np.bool_)
        for part in self._parts:
            for column in columns:
                named |= column.with_text(part)
        return int((named & ~found).sum())

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

    def _at_paths(self, column: pa.Array, paths: _Paths) -> BoolArray:
        found = np.zeros(len(column), dtype=np.bool_)
        in_bytes = ByteColumn(column)
        is_json = _like_json(column)
        is_given = _bools(pc.is_valid(column))
        possible = _possible(column, in_bytes, paths)
        candidates = is_given & is_json & possible
        others = is_given & ~is_json
        if self._decoders:
            candidates |= others & (possible | ~self._shows_texts(column, others, paths))
        else:
            self.undecoded += int(others.sum())
        for row in np.flatnonzero(candidates).tolist():
            found[row] = self._has_value(column[row].as_py(), paths)
        return found

    def _shows_texts(self, column: pa.Array, others: BoolArray, paths: _Paths) -> BoolArray:
        """Return which of some payloads have the texts in their bytes, if they have them: those of
        schemas that are known."""
        shown = np.zeros(len(column), dtype=np.bool_)
        texts = {text for texts in paths.values() for text in texts}
        if any(_is_encoded(text) for text in texts):
            return shown
        ids = _schema_ids(column, others)
        in_json = np.zeros(len(column), dtype=np.bool_)
        for schema_id in np.unique(ids[ids >= 0]).tolist():
            kinds = {each.texts_in(schema_id, texts) for each in self._decoders} - {None}
            if kinds == {Texts.PLAIN}:
                shown |= ids == schema_id
            elif kinds == {Texts.IN_JSON}:
                in_json |= ids == schema_id
        if in_json.any():
            # Without an end Arrow 26 fails for payloads that have nothing left.
            rests = pc.binary_slice(column, ID_PREFIX_BYTES, _MOST_BYTES)
            shown |= in_json & _like_json(rests)
        return shown

    def _has_value(self, data: bytes, paths: _Paths) -> bool:
        decoded = decoded_value(data, self._decoders)
        if decoded is None:
            self.undecoded += 1
            return False
        return any(
            is_value(each, text)
            for path, texts in paths.items()
            for each in path.values(decoded[0])
            for text in texts
        )


def _paths(identifiers: Sequence[Identifier], kind: Kind) -> _Paths:
    found: dict[ValuePath, set[str]] = {}
    for each in _of(identifiers, kind):
        found.setdefault(ValuePath.of(each.name), set()).add(each.value.decode())
    return found


def _texts(values: Iterable[bytes]) -> set[str]:
    """Return those of the values that are texts."""
    return {each.decode() for each in values if _is_utf8(each)}


def _is_encoded(text: str) -> bool:
    """Return whether binary formats have this otherwise than as a text."""
    return number_of(text) is not None or text in ("true", "false", "null")


def _is_any_hidden(decoders: Iterable[Decoder], texts: Collection[str]) -> bool:
    """Return whether decoded payloads can have one of the texts and not its bytes."""
    return any(map(_is_encoded, texts)) or any(each.hides(texts) for each in decoders)


def _schema_ids(column: pa.Array, rows: BoolArray) -> LongArray:
    """Return the schema ids that payloads begin with (F285), those of some rows; -1 for others."""
    data, borders, _ = binaries(column)
    found = np.full(len(column), -1, dtype=np.int64)
    begins, ends = borders[:-1].astype(np.int64), borders[1:]
    begin = begins[chosen := np.flatnonzero(rows & (ends - begins >= ID_PREFIX_BYTES))]
    has_id = data[begin] == Magic.SCHEMA_ID
    places = begin[has_id, None] + np.arange(1, ID_PREFIX_BYTES)
    found[chosen[has_id]] = data[places].view(">i4")[:, 0]
    return found


def _possible(column: pa.Array, in_bytes: ByteColumn, paths: _Paths) -> BoolArray:
    """Return which JSON values can have one of the texts somewhere: as it is, with escapes, or as a
    number that is written with an exponent."""
    possible = np.zeros(len(column), dtype=np.bool_)
    texts = {text for texts in paths.values() for text in texts}
    numbers = {text for text in texts if number_of(text) is not None}
    plain = (texts - numbers) | {_digits(text) for text in numbers}
    for text in _written_in_json(plain):
        possible |= in_bytes.with_text(text)
    if numbers:
        possible |= _bools(pc.match_substring_regex(column, _EXPONENT))
    return possible


def _written_in_json(texts: Iterable[str]) -> set[bytes]:
    """Return what JSON has in it, one or the other, where it has one of the texts."""
    given = [*texts]
    if not given:
        return set()
    escape = _ESCAPE if any(map(_ESCAPED.search, given)) else _LONG_ESCAPE
    return {escape, *(each.encode() for each in given)}


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
    data, borders, _ = binaries(column)
    like = np.zeros(len(column), dtype=np.bool_)
    if mark_plain_rows(data, borders, _STARTS_JSON, like):
        return like
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


def _with_texts(records: pa.RecordBatch, texts: Iterable[bytes]) -> BoolArray:
    """Return which records have one of the texts in the key, the value or a header."""
    headers = records.column("headers")
    inner = pc.list_flatten(headers)
    key, value = ByteColumn(records.column("key")), ByteColumn(records.column("value"))
    parts = [ByteColumn(pc.struct_field(inner, each)) for each in ("key", "value")]
    found = np.zeros(len(records), dtype=np.bool_)
    in_headers = np.zeros(len(inner), dtype=np.bool_)
    for text in texts:
        found |= key.with_text(text) | value.with_text(text)
        for part in parts:
            in_headers |= part.with_text(text)
    if in_headers.any():
        rows = integers(pc.list_parent_indices(headers).cast(pa.int64()))
        found[rows[in_headers]] = True
    return found


def everywhere(identifiers: Sequence[Identifier]) -> list[Identifier]:
    """Return the identifiers' values as texts: for topics whose keys and values are Kafka's own."""
    return [Identifier(Kind.TEXT, value) for value in sorted({each.value for each in identifiers})
            if value]  # fmt: skip
