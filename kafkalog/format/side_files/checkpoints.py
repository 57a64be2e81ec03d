"""Checkpoints: a log directory's small text files of a version, a count and as many lines.

Rules: docs/format.md F80 and F81.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from kafkalog.errors import CorruptDataError

TopicPartition = tuple[str, int]

_FAULT = "checkpoint"
_VERSION = "0"
_SHOWN = 80
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
# An entry takes much more memory than its line; no log directory has as many partitions.
_MOST_ENTRIES = 1_000_000
# A list of as many takes the 1 GiB that Kafka's scripts give to Java. Rule: F1370.
_MOST_ANNOUNCED = 1 << 28
_Entry = TypeVar("_Entry")


# Logs are found one by one, each with the same few files, which name all partitions.
@lru_cache(maxsize=16)
def read_offset_checkpoint(text: str) -> Mapping[TopicPartition, int]:
    """Return offsets by topic and partition. An empty file is an empty checkpoint.

    Raises CorruptDataError, its position the line's number.
    """
    if not text:
        return {}
    # Of a partition that is named twice the last line counts, as for a broker.
    return dict(read_checkpoint(text, "topic partition offset", _offset_of_partition))


def _offset_of_partition(words: list[str]) -> tuple[TopicPartition, int]:
    topic, partition, offset = words
    return (topic, int(partition)), int64(offset)


class CheckpointRefusal(NamedTuple):
    """Why a broker refuses a checkpoint. With `is_number` it is a number that it cannot parse: then
    it does not fail to read the file, but where it uses what is in it. With `ends_process` Java has
    no memory for as many lines as it announces, and the broker ends."""

    detail: str
    is_number: bool = False
    ends_process: bool = False


def refusal(text: str, words: int) -> CheckpointRefusal | None:
    """Return why a broker refuses a checkpoint whose lines have so many words, the first of three
    a name and the others numbers; None if it reads it. It is less strict than `read_checkpoint`
    about an end after the version, and more so about empty lines. Rule: F964."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return None
    if not _is_number(lines[0], 32) or int(lines[0]) != 0:
        detail = f"line 1: version {lines[0][:_SHOWN]!r}, and a broker reads version {_VERSION}"
        return CheckpointRefusal(detail)
    if len(lines) == 1:
        return None
    if not _is_number(lines[1], 32):
        return CheckpointRefusal(f"line 2: {lines[1][:_SHOWN]!r} is not a count")
    if int(lines[1]) >= _MOST_ANNOUNCED:
        detail = f"line 2: {lines[1]} entries, for which a broker has no memory"
        return CheckpointRefusal(detail, ends_process=True)
    if int(lines[1]) < 0:
        return CheckpointRefusal(f"line 2: {lines[1]} entries", is_number=True)
    for place, line in enumerate(lines[2:], start=3):
        parts = java_words(line)
        if len(parts) != words:
            return CheckpointRefusal(f"line {place}: {line[:_SHOWN]!r}")
        first, second = parts[-2:]
        if not (_is_number(first, 32) and _is_number(second, 64)):
            return CheckpointRefusal(f"line {place}: {line[:_SHOWN]!r}", is_number=True)
    if int(lines[1]) != len(lines) - 2:
        found = f"{lines[1]} entries announced, {len(lines) - 2} found"
        return CheckpointRefusal(f"line 2: {found}")
    return None


def java_words(line: str) -> list[str]:
    """Return the words of a line as Java splits it: white space at its beginning comes after an
    empty word, at its end it does not count."""
    return re.split(r"[ \t\n\x0b\f\r]+", line.rstrip(" \t\x0b\f"))


def _is_number(word: str, bits: int) -> bool:
    limit: int = 1 << (bits - 1)
    return _INTEGER.fullmatch(word) is not None and -limit <= int(word) < limit


def int64(word: str) -> int:
    """Return a number of 64 bits. Raises ValueError."""
    number = int(word)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{word} has more than 64 bits")
    return number


def write_offset_checkpoint(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the checkpoint's text, entries in the order given."""
    return write_checkpoint(
        f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()
    )


def read_checkpoint(text: str, shape: str, entry: Callable[[list[str]], _Entry]) -> list[_Entry]:
    """Return the entries of any checkpoint: `entry` makes one of a line's words and raises
    ValueError where they are not of the `shape`.

    Raises CorruptDataError, its position the line's number.
    """
    lines = text.split("\n", _MOST_ENTRIES + 2)
    if lines[0].strip() != _VERSION:
        found = repr(lines[0][:_SHOWN]) if text else "missing"
        raise CorruptDataError(_FAULT, f"version {found}, known is {_VERSION}", position=1)
    try:
        announced = int(lines[1])
    except (IndexError, ValueError):
        raise CorruptDataError(_FAULT, "no count of entries", position=2) from None
    if len(lines) > _MOST_ENTRIES + 2 and lines[-1]:
        detail = f"more than {_MOST_ENTRIES:,} entries, which is not what brokers write"
        raise CorruptDataError(_FAULT, detail, position=_MOST_ENTRIES + 3)
    entries: list[_Entry] = []
    for number, line in enumerate(lines[2:], start=3):
        if not line.strip():
            continue
        try:
            entries.append(entry(line.split()))
        except ValueError:
            detail = f"{line[:_SHOWN]!r} is not `{shape}`"
            raise CorruptDataError(_FAULT, detail, position=number) from None
    if len(entries) != announced:
        detail = f"{announced} entries announced, {len(entries)} found"
        raise CorruptDataError(_FAULT, detail, position=2)
    return entries


def write_checkpoint(lines: Iterable[str]) -> str:
    """Return a checkpoint's text."""
    entries = list(lines)
    return "\n".join([_VERSION, str(len(entries)), *entries]) + "\n"
