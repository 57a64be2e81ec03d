"""Sentences with numbers in them."""

from __future__ import annotations

from kafkalog.words import sentence


def test_numbers_stand_in_sentences_as_people_write_them() -> None:
    words = "{0:record} left to read for {1:ms}, all commits since of {2}"
    assert sentence(words, (1, 1_080_000, 213)) == (
        "1 record left to read for 18 min, all commits since of 213"
    )
    assert sentence(words, (12_000, 165_037_855, 12_345)) == (
        "12,000 records left to read for 46 h, all commits since of 12345"
    )


def test_a_time_that_lies_ahead_is_told_as_it_is() -> None:
    # A record's timestamp is its producer's: it can be later than the moment that is asked about.
    assert sentence("the next is {0:ms} old", (-1_500,)) == "the next is -1,500 ms old"
