"""Sentences with numbers in them, as columns: `kafkalog.words` writes them, inside tasks."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafkalog.words import age_text, sentence


def sentence_column(words: str, *numbers: Column) -> Column:
    """Return the words with numbers in their places; null where a number is null."""
    return _text(lambda *values: sentence(words, values), *numbers)


def age_column(age_ms: Column) -> Column:
    """Return how long ago something was; null for null."""
    return _text(age_text, age_ms)


def _text(write: Callable[..., str], *columns: Column) -> Column:
    def text(*values: int | None) -> str | None:
        return None if None in values else write(*values)

    return F.udf(text, "string", useArrow=True)(*columns)
