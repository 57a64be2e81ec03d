"""Numbers in words, alone and in sentences."""

import pytest

from kafkalog.words import age_text, duration_text, time_doubt
from tests.support.durations import LENGTHS
from tests.support.sentences import sentence


@pytest.mark.parametrize(("length_ms", "text"), LENGTHS)
def test_lengths_of_time_are_written_as_people_do(length_ms: int, text: str) -> None:
    assert duration_text(length_ms) == text


def test_numbers_stand_in_sentences_as_people_write_them() -> None:
    words = "{0:record} left to read for {1:ms}, all commits since of {2}"
    assert sentence(words, (1, 1_080_000, 213)) == (
        "1 record left to read for 18 min, all commits since of 213"
    )
    assert sentence(words, (12_000, 165_037_855, 12_345)) == (
        "12,000 records left to read for 46 h, all commits since of 12345"
    )


@pytest.mark.parametrize("text", ["1795246890000", "0", "1000", "2026-11-21T12:00:00Z", "noon"])
def test_a_time_that_is_one_is_not_doubted(text: str) -> None:
    assert time_doubt(text) is None


def test_a_number_in_1970_that_is_a_time_of_kafkas_in_seconds_is_doubted() -> None:
    assert time_doubt("1795246890") == (
        "1795246890 is 1970-01-21T18:40:46.890Z, for numbers are milliseconds; seconds, of "
        "2026-11-21T07:41:30.000Z, would be 1795246890000"
    )


@pytest.mark.parametrize(
    ("age_ms", "text"), [(410_000, "7 min"), (0, "0 ms"), (-7_200_000, "2 h in the future")]
)
def test_what_is_still_to_come_is_said_to_be_in_the_future(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text
