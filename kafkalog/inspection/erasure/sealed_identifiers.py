"""Records found by the HMACs of identifiers that a proof has, without the identifiers.

Rule: docs/erasure.md F1263.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import integers
from kafkalog.columns.jit.compiled import BoolArray
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.record_matching import Decoder
from kafkalog.inspection.erasure.value_paths import ValuePath, decoded_value

# A secret is the right one if this has the HMAC that the proof says.
_CHECKED = b"kafkalog erasure proof"
_MOST_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class SealedIdentifiers:
    """HMACs by the kind of identifier and its name, and the secret that they were made with."""

    secret: bytes
    hmacs: Mapping[tuple[Kind, str], frozenset[str]]

    @classmethod
    def of(cls, secret: bytes, listed: Iterable[Mapping[str, str]]) -> SealedIdentifiers:
        """Return the identifiers that a proof lists. Raises KeyError, ValueError for a list that
        is none."""
        found: dict[tuple[Kind, str], set[str]] = {}
        for each in listed:
            place = Kind(each["kind"]), each["name"]
            found.setdefault(place, set()).add(each["hmac_sha256"])
        return cls(secret, {place: frozenset(hmacs) for place, hmacs in found.items()})

    @property
    def texts(self) -> int:
        """How many of them are texts: these are parts of a record, which has no HMAC of them."""
        return sum(len(each) for (kind, _), each in self.hmacs.items() if kind is Kind.TEXT)


def key_check(secret: bytes) -> str:
    """Return what shows that a secret is the one that a proof's HMACs were made with."""
    return Identifier(Kind.TEXT, _CHECKED).hmac(secret)


class SealedMatcher:
    """Finds the records of sealed identifiers as RecordMatcher does, but for texts: by the HMACs of
    all keys, of headers with these names, and of what is at these paths."""

    def __init__(self, sealed: SealedIdentifiers, decoders: Sequence[Decoder] = ()) -> None:
        self._by_kind: dict[Kind, dict[str, frozenset[str]]] = {}
        for (kind, name), hmacs in sealed.hmacs.items():
            self._by_kind.setdefault(kind, {})[name] = hmacs
        self._decoders = decoders
        self._is_one: Callable[[Kind, str, bytes], bool] = lru_cache(_MOST_KEPT)(
            lambda kind, name, value: (
                Identifier(kind, value, name).hmac(sealed.secret) in sealed.hmacs[kind, name]
            )
        )
        self.undecoded = 0
        # Parts of a key have other HMACs.
        self.elsewhere = 0
        # HMACs are not in the payloads.
        self.sieve = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at."""
        return "key", "value", "headers"

    def matches(self, records: pa.RecordBatch) -> BoolArray:
        """Return which records are a person's: bool, one for each."""
        found = np.zeros(len(records), dtype=np.bool_)
        keys, values = records.column("key"), records.column("value")
        if Kind.KEY in self._by_kind:
            found |= self._with_keys(keys)
        for column, kind in ((keys, Kind.KEY_PATH), (values, Kind.VALUE_PATH)):
            if kind in self._by_kind:
                found |= self._at_paths(column, kind)
        if Kind.HEADER in self._by_kind:
            found |= self._with_headers(records.column("headers"))
        return found

    def _with_keys(self, column: pa.Array) -> BoolArray:
        encoded = column.dictionary_encode()
        is_one = [
            each is not None and any(
                self._is_one(Kind.KEY, "", key) for key in (each, *self._whole(each))
            )
            for each in encoded.dictionary.to_pylist()
        ]  # fmt: skip
        chosen = pa.array(is_one, pa.bool_()).take(encoded.indices)
        found: BoolArray = pc.fill_null(chosen, False).to_numpy(zero_copy_only=False)
        return found

    def _whole(self, key: bytes) -> Iterator[bytes]:
        """Yield the texts that a key is if a registry's serializer wrote it."""
        for decoder in self._decoders:
            try:
                yield from _texts_of(decoder(key))
            except (ValueError, RecursionError):
                continue

    def _with_headers(self, column: pa.Array) -> BoolArray:
        found = np.zeros(len(column), dtype=np.bool_)
        inner = pc.list_flatten(column)
        rows = integers(pc.list_parent_indices(column).cast(pa.int64()))
        for name in self._by_kind[Kind.HEADER]:
            is_named = pc.fill_null(pc.equal(inner.field("key"), pa.scalar(name)), False)
            values = inner.field("value").filter(is_named).to_pylist()
            of_name = rows[is_named.to_numpy(zero_copy_only=False)]
            for row, value in zip(of_name.tolist(), values, strict=True):
                found[row] |= value is not None and self._is_one(Kind.HEADER, name, value)
        return found

    def _at_paths(self, column: pa.Array, kind: Kind) -> BoolArray:
        found = np.zeros(len(column), dtype=np.bool_)
        paths = {name: ValuePath.of(name) for name in self._by_kind[kind]}
        for row, data in enumerate(column.to_pylist()):
            if data is not None:
                found[row] = self._has_value(data, kind, paths)
        return found

    def _has_value(self, data: bytes, kind: Kind, paths: Mapping[str, ValuePath]) -> bool:
        decoded = decoded_value(data, self._decoders)
        if decoded is None:
            self.undecoded += 1
            return False
        return any(
            self._is_one(kind, name, text)
            for name, path in paths.items()
            for each in path.values(decoded[0])
            for text in _texts_of(each)
        )


def _texts_of(found: Any) -> Iterator[bytes]:
    """Yield how an identifier may write what is at a path: numbers as they are, and the shortest
    way."""
    if isinstance(found, str):
        yield found.encode("utf-8", "surrogatepass")
    elif isinstance(found, bytes):
        yield found
    elif found is None or isinstance(found, bool):
        yield json.dumps(found).encode()
    elif isinstance(found, int | float):
        yield str(found).encode()
        number = Decimal(str(found))
        if number.is_finite():
            yield format(number.normalize(), "f").encode()
