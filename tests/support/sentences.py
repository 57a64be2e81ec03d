"""Sentences with numbers in them, one by one."""

from collections.abc import Sequence

from kafkalog.words import number_text, sentence_parts


def sentence(words: str, numbers: Sequence[int]) -> str:
    """The words, in the form of `sentence_parts`, with numbers in their places."""
    parts = []
    for text, place, written in sentence_parts(words):
        parts.append(text)
        if place is not None:
            parts.append(number_text(numbers[place], written))
    return "".join(parts)
