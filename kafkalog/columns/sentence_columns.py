"""Sentences with numbers in them as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import chosen, fixed_width, strings
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.words import DURATION_UNITS, UNITS_MS, number_text, sentence_parts

# Counts of units are below it.
_MOST_MS = 2**60


def sentences(words: str, numbers: Sequence[LongArray]) -> pa.Array:
    """Return the words in the form of `sentence_parts`, with the numbers of each row in their
    places. What is different is written once."""
    # An array of nothing, for words without numbers.
    rows = len(numbers[0])
    parts: list[pa.Array | pa.Scalar] = [chosen([""], np.zeros(rows, dtype=np.int32))]
    for text, place, written in sentence_parts(words):
        parts.append(pa.scalar(text))
        if place is not None:
            parts.append(_texts(numbers[place], written))
    return pc.binary_join_element_wise(*parts, pa.scalar(""))


def _texts(numbers: LongArray, written: str) -> pa.Array:
    if not written:
        return fixed_width(numbers, pa.int64()).cast(pa.string())
    alike = _rounded(numbers) if written == "ms" else numbers
    _, firsts, codes = np.unique(alike, return_index=True, return_inverse=True)
    texts = strings([number_text(number, written) for number in numbers[firsts].tolist()])
    return texts.take(fixed_width(codes, pa.int64()))


def _rounded(lengths_ms: LongArray) -> LongArray:
    """Return numbers that are the same for durations that are written alike only."""
    sizes = np.abs(lengths_ms)
    found = sizes
    for number, name in enumerate(reversed(DURATION_UNITS), start=1):
        unit_ms = UNITS_MS[name]
        counts = (sizes + unit_ms // 2) // unit_ms + number * _MOST_MS
        found = np.where(sizes >= 2 * unit_ms, counts, found)
    return np.where(lengths_ms < 0, -found, found)


def chosen_sentences(
    rules: LongArray, words: Mapping[int, str], numbers: Sequence[LongArray]
) -> pa.Array:
    """Return for each row the words of its rule, with the row's numbers in their places; null for a
    rule without words."""
    rows = [np.flatnonzero(rules == rule) for rule in words]
    found = [
        sentences(text, [each[of_rule] for each in numbers])
        for text, of_rule in zip(words.values(), rows, strict=True)
    ]
    place = np.full(len(rules), -1, dtype=np.int64)
    every = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    place[every] = np.arange(len(every))
    texts = pa.concat_arrays(found)
    return texts.take(fixed_width(place, pa.int64(), place < 0))
