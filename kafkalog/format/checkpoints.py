"""Offset checkpoints and meta.properties: the small text files of a log directory.

Rules: docs/format.md F80 to F83.
"""

from __future__ import annotations

from kafkalog.errors import CorruptDataError

TopicPartition = tuple[str, int]

_FAULT = "checkpoint"


def read_offset_checkpoint(text: str) -> dict[TopicPartition, int]:
    """Offsets by topic and partition: a version, a count, then `topic partition offset` lines.

    An empty file is an empty checkpoint. Raises CorruptDataError, its position the line's number.
    """
    lines = text.splitlines()
    if not lines:
        return {}
    if lines[0].strip() != "0":
        raise CorruptDataError(_FAULT, f"version {lines[0]!r}, known is 0", position=1)
    try:
        announced = int(lines[1])
    except (IndexError, ValueError):
        raise CorruptDataError(_FAULT, "no count of entries", position=2) from None
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(lines[2:], start=3):
        if not line.strip():
            continue
        try:
            topic, *numbers = line.split()
            partition, offset = map(int, numbers)
        except ValueError:
            detail = f"{line!r} is not `topic partition offset`"
            raise CorruptDataError(_FAULT, detail, position=number) from None
        offsets[topic, partition] = offset
    if len(offsets) != announced:
        detail = f"{announced} entries announced, {len(offsets)} found"
        raise CorruptDataError(_FAULT, detail, position=2)
    return offsets


def write_offset_checkpoint(offsets: dict[TopicPartition, int]) -> str:
    """The checkpoint's text, entries in the order given."""
    entries = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return "\n".join(["0", str(len(entries)), *entries]) + "\n"


def read_properties(text: str) -> dict[str, str]:
    """The keys and values of a file such as meta.properties, comments left out."""
    properties: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.lstrip().startswith(("#", "!")):
            properties[key.strip()] = value.strip()
    return properties
