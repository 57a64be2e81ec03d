"""The topic's id in a partition's directory, `partition.metadata`. Rules: docs/format.md F109 and
F967."""

from __future__ import annotations

import re

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import java_words

MALFORMED, VERSION = "malformed", "version"
# A broker ends where a line is missing or an id is none; of the other faults it loses the
# directory only.
MISSING_LINE, NO_ID = "missing line", "no id"
ENDING_FAULTS = (MISSING_LINE, NO_ID)

_UUID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_NUMBER = re.compile(r"\+?[0-9]{1,10}")
_ID_CHARACTERS = 22


def read_topic_id(text: str) -> str:
    """Return the id as Kafka prints it: 16 bytes in URL-safe base64, without padding. As a broker
    does, read the second word of the first line, and of the second.

    Raises CorruptDataError, its position the line's number.
    """
    # Later versions are read as this one.
    version = _second_word(text, 1)
    if not _NUMBER.fullmatch(version):
        raise CorruptDataError(VERSION, f"{version[:80]!r} is not a number", position=1)
    topic_id = _second_word(text, 2)
    if not _UUID.fullmatch(topic_id):
        raise CorruptDataError(NO_ID, f"{topic_id[:80]!r} is not an id", position=2)
    return topic_id[:_ID_CHARACTERS]


def _second_word(text: str, number: int) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    if not text or len(lines) < number:
        raise CorruptDataError(MISSING_LINE, f"it has no line {number}", position=number)
    line = lines[number - 1]
    words = java_words(line)
    if len(words) != 2:
        detail = f"line {number} is not two words: {line[:80]!r}"
        raise CorruptDataError(MALFORMED, detail, position=number)
    return words[1]


def write_topic_id(topic_id: str) -> str:
    """Return the file's text."""
    return f"version: 0\ntopic_id: {topic_id}"
