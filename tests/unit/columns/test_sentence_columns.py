"""Sentences of many rows at once are those that are written one by one."""

import numpy as np

from kafkalog.columns.sentence_columns import chosen_sentences, sentences
from tests.support.durations import LENGTHS
from tests.support.sentences import sentence

NUMBERS = [0, 1, 2, -7, 1, *(length_ms for length_ms, _ in LENGTHS)]


def test_each_row_has_its_own_numbers() -> None:
    words = "{0:record} left to read for {1:ms}, all commits since of {0}"
    columns = [np.array(NUMBERS), np.array(NUMBERS[::-1])]
    expected = [sentence(words, pair) for pair in zip(NUMBERS, NUMBERS[::-1], strict=True)]
    assert sentences(words, columns).to_pylist() == expected


def test_each_row_has_the_words_of_its_rule() -> None:
    rules = np.array([2, -1, 0, 2, 1])
    numbers = [np.arange(5)]
    found = chosen_sentences(rules, {0: "none", 2: "lag is {0}", 3: "unused {0}"}, numbers)
    assert found.to_pylist() == ["lag is 0", None, "none", "lag is 3", None]
    assert chosen_sentences(rules, {5: "unused"}, numbers).to_pylist() == [None] * 5
