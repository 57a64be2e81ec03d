"""What consumers subscribe to: topics by their names, or by a filter.

Rules: docs/zookeeper.md F445, F446 and F456.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from kafkalog.coordination.zookeeper.java_patterns import JavaPattern
from kafkalog.errors import UnsupportedFormatError

# Topics that filters leave out by default (exclude.internal.topics).
_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
_QUOTES = "\"'"


class SubscriptionPattern(Enum):
    """How a subscription names topics, in the words of the registered JSON."""

    STATIC = "static"
    WHITE_LIST = "white_list"
    BLACK_LIST = "black_list"


class Subscription(NamedTuple):
    """What a consumer has registered: its streams by topic, or by the expression of its filter."""

    pattern: SubscriptionPattern
    streams: Mapping[str, int]

    @classmethod
    def of_nothing(cls) -> Subscription:
        """Return what a consumer is taken to have whose registration cannot be read."""
        return cls(SubscriptionPattern.STATIC, {})

    @property
    def is_filter(self) -> bool:
        """Whether it names topics by an expression."""
        return self.pattern is not SubscriptionPattern.STATIC

    def streams_of(self, topic: str) -> int:
        """Return how many streams consume a topic. Raises UnsupportedFormatError for an expression
        that is not supported."""
        if not self.is_filter:
            return self.streams.get(topic, 0)
        if topic in _INTERNAL_TOPICS:
            return 0
        is_white = self.pattern is SubscriptionPattern.WHITE_LIST
        allowed = [n for text, n in self.streams.items() if _matches(text, topic) is is_white]
        return max(allowed, default=0)


def filter_expression(given: str) -> str:
    """Return the regular expression of a filter: a comma is an alternative, spaces and the quotes
    of a settings file are dropped."""
    return given.strip().replace(",", "|").replace(" ", "").strip(_QUOTES)


@lru_cache(maxsize=1 << 16)  # the consumers of a group ask the same of every topic
def _matches(expression: str, topic: str) -> bool:
    return _pattern(filter_expression(expression)).matches(topic)


@lru_cache(maxsize=256)
def _pattern(expression: str) -> JavaPattern:
    return JavaPattern(expression)


def readable_filter(subscription: Subscription) -> str | None:
    """Return why a subscription's expression is not supported, None if it is."""
    for expression in subscription.streams if subscription.is_filter else ():
        try:
            _pattern(filter_expression(expression))
        except UnsupportedFormatError as error:
            return str(error)
    return None
