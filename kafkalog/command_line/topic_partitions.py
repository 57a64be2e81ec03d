"""The patterns that select topics and partitions for kafka-get-offsets. Rule:
docs/command-line.md F590.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kafkalog.coordination.zookeeper.java_patterns import JavaPattern
from kafkalog.coordination.zookeeper.topic_filters import filter_expression
from kafkalog.errors import OptionError, UnsupportedFormatError
from kafkalog.format.side_files.checkpoints import TopicPartition

_PATTERN = re.compile(r"(?P<topic>[^:,]*)(:((?P<one>[0-9]*)|(?P<first>[0-9]*)-(?P<end>[0-9]*)))?")
_ALLOWED = "TOPIC[:PARTITION], a partition being N, N-M (without M), N- or -M, separated by commas"

Choice = Callable[[TopicPartition], bool]


@dataclass(frozen=True, slots=True)
class PartitionPattern:
    """Topics by a regular expression for the whole name, None for all, and partitions [first,
    end)."""

    topic: JavaPattern | None
    first: int = 0
    end: int | None = None

    def matches(self, key: TopicPartition) -> bool:
        """Return whether a partition is meant."""
        topic, partition = key
        if partition < self.first or (self.end is not None and partition >= self.end):
            return False
        return self.topic is None or self.topic.matches(topic)


def chosen_by_patterns(option: str, text: str) -> Choice:
    """Return a choice of the partitions that one of the patterns means. Raises OptionError for a
    text that is none, in the name of the option."""
    patterns = [_partition_pattern(option, part) for part in text.split(",")]
    return lambda key: any(pattern.matches(key) for pattern in patterns)


def topic_pattern(option: str, text: str) -> JavaPattern:
    """Return the compiled expression, written as in consumers' filters. Raises OptionError."""
    try:
        return JavaPattern(filter_expression(text))
    except UnsupportedFormatError as error:
        raise OptionError(option, text, f"a supported regular expression: {error}") from None


def _partition_pattern(option: str, text: str) -> PartitionPattern:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise OptionError(option, text, _ALLOWED)
    topic = topic_pattern(option, match["topic"]) if match["topic"] else None
    if match["one"]:
        return PartitionPattern(topic, int(match["one"]), int(match["one"]) + 1)
    end = int(match["end"]) if match["end"] else None
    return PartitionPattern(topic, int(match["first"] or 0), end)
