"""Sentences with numbers in them, as columns; what `kafkalog.words` says of single values."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafkalog.words import DURATION_UNITS, HOURS_ALONE, plural, sentence_parts


def sentence(words: str, *numbers: Column) -> Column:
    """The words, in the form of `kafkalog.words.sentence_parts`, with numbers in their places; null
    where one of them is null."""
    said = []
    for text, place, written in sentence_parts(words):
        said.append(F.lit(text))
        if place is not None:
            said.append(_number_text(numbers[place], written))
    return F.concat(*said)


def _number_text(number: Column, written: str) -> Column:
    if written == "ms":
        return duration_text(number)
    return _counted(number, written) if written else number.cast("string")


def _counted(count: Column, noun: str) -> Column:
    is_one = count == 1
    words = F.when(is_one, F.lit(noun)).otherwise(F.lit(plural(noun)))
    return F.when(count.isNotNull(), F.format_string("%,d %s", count, words))


def duration_text(length_ms: Column) -> Column:
    """A length of time by its largest unit that is there twice, of days the hours too; null for
    null."""
    length = F.abs(length_ms)
    text = F.format_string("%,d ms", length)
    for name, unit_ms in reversed(DURATION_UNITS):
        count = F.floor(length / unit_ms + 0.5)
        said = F.format_string(f"%d {name}", count)
        if name == "h":
            said = F.when(count > HOURS_ALONE, _days_text(count)).otherwise(said)
        text = F.when(length >= 2 * unit_ms, said).otherwise(text)
    sign = F.when(length_ms < 0, "-").otherwise("")
    return F.when(length_ms.isNotNull(), F.concat(sign, text))


def age_text(age_ms: Column) -> Column:
    """How long ago something was, as `duration_text` has it; less than nothing is in the future."""
    future = F.concat(duration_text(-age_ms), F.lit(" in the future"))
    return F.when(age_ms < 0, future).otherwise(duration_text(age_ms))


def _days_text(hours: Column) -> Column:
    days = F.format_string("%,d d", F.floor(hours / 24))
    rest = F.when(hours % 24 > 0, F.format_string(" %d h", hours % 24)).otherwise("")
    return F.concat(days, rest)
