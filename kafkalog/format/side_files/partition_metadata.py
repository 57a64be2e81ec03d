"""The topic's id in a partition's directory, `partition.metadata`. Rules: docs/format.md F109 and
F967."""

from __future__ import annotations

import re

from kafkalog.errors import CorruptDataError

_LINES = re.compile(r"version:\s*(?P<version>\S+)\s*\ntopic_id:\s*(?P<topic_id>\S+)\s*")


def read_topic_id(text: str) -> str:
    """Return the id as Kafka prints it: 16 bytes in URL-safe base64, without padding.

    Raises CorruptDataError, its position the line's number.
    """
    match = _LINES.fullmatch(text)
    if match is None:
        detail = "not the two lines `version: 0` and `topic_id: ID`"
        raise CorruptDataError("malformed", detail, position=1)
    # Later versions are read as this one.
    if not re.fullmatch(r"\+?[0-9]{1,10}", match["version"]):
        raise CorruptDataError("version", f"{match['version'][:80]!r} is not a number", position=1)
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}", match["topic_id"]):
        raise CorruptDataError("malformed", f"{match['topic_id'][:80]!r} is not an id", position=2)
    return match["topic_id"]


def write_topic_id(topic_id: str) -> str:
    """Return the file's text."""
    return f"version: 0\ntopic_id: {topic_id}"
