"""Which topics and partitions to read: `subscribe`, `subscribePattern`, `assign`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kafkalog.errors import OptionError, refuse_unknown
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.log_dir.former_topics import has_whole_name
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.option_values import OptionValues

SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN = TOPIC_OPTIONS = ("subscribe", "subscribePattern", "assign")


# Not a topic name: means all topics, including internal ones.
ALL_TOPICS = "*"
# As with Kafka's consumers, `.*` does not match internal topics, but a pattern that begins as their
# names do does.
_INTERNAL_PREFIX = "__"


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """At most one of the three is set; none means every topic except internal ones, and except
    former ones, whose names other topics have now (docs/format.md F925)."""

    subscribe: tuple[str, ...] | None = None
    pattern: str | None = None
    assign: frozenset[TopicPartition] | None = None

    def chosen(self, logs: Iterable[PartitionLog]) -> list[PartitionLog]:
        """Return the requested logs. Raises OptionError if a named one is missing.

        A file or a directory that was given by its own path is read whatever it is called.
        """
        found = list(logs)
        if self.subscribe == (ALL_TOPICS,):
            return found
        if self.subscribe is not None:
            refuse_unknown(SUBSCRIBE, self.subscribe, {log.topic for log in found})
            return [log for log in found if log.topic in self.subscribe]
        if self.assign is not None:
            keys = {log.topic_partition for log in found}
            absent = sorted(f"{topic}-{partition}" for topic, partition in self.assign - keys)
            refuse_unknown(ASSIGN, absent, [log.name for log in found])
            return [log for log in found if log.topic_partition in self.assign]
        if self.pattern is None:
            return [log for log in found if log.is_named or not _is_extra(log)]
        with_internal = _INTERNAL_PREFIX in self.pattern
        with_former = has_whole_name(self.pattern)
        matches = re.compile(self.pattern).search
        return [
            log
            for log in found
            if log.topic is not None
            and matches(log.topic)
            and (log.topic not in INTERNAL_TOPICS or with_internal)
            and (not log.is_former or with_former)
        ]


def internal_logs(
    choice: TopicChoice, logs: Iterable[PartitionLog], view: str, known: Collection[str]
) -> list[PartitionLog]:
    """Return the chosen logs of the internal topics that a view reads, all of these by default.

    Raises OptionError if another topic is requested by name or by path.
    """
    found = list(logs)
    is_by_name = choice.assign is not None or choice.subscribe not in (None, (ALL_TOPICS,))
    chosen = found if choice == TopicChoice() else choice.chosen(found)
    others = {
        log.topic or log.path
        for log in chosen
        if log.topic not in known and (is_by_name or log.is_named)
    }
    if others:
        raise OptionError(
            "view", f"{view} of {', '.join(sorted(others))}", f"{view} of {', '.join(known)}"
        )
    return [log for log in chosen if log.topic in known]


def _is_extra(log: PartitionLog) -> bool:
    return log.topic in INTERNAL_TOPICS or log.is_former


def topic_choice(options: OptionValues) -> TopicChoice:
    """Parse the options. Raises OptionError if they contradict each other or cannot be read."""
    assign = options.text(ASSIGN)
    return given_topics(
        options.listed(SUBSCRIBE),
        options.text(SUBSCRIBE_PATTERN),
        None if assign is None else _assigned(assign),
    )


def given_topics(
    subscribe: Sequence[str] | None,
    pattern: str | None,
    assign: frozenset[TopicPartition] | None = None,
) -> TopicChoice:
    """Return the choice. Raises OptionError for more than one way to choose, and for a pattern that
    is not a regular expression."""
    ways = {SUBSCRIBE: subscribe, SUBSCRIBE_PATTERN: pattern, ASSIGN: assign}
    given = [name for name in TOPIC_OPTIONS if ways[name] is not None]
    if len(given) > 1:
        raise OptionError(tuple(given), "both", "one of them")
    if pattern is not None:
        _check_pattern(pattern)
        pattern = pattern.strip()
    return TopicChoice(None if subscribe is None else tuple(subscribe), pattern, assign)


def _check_pattern(pattern: str) -> None:
    if not pattern.strip():
        raise OptionError(SUBSCRIBE_PATTERN, pattern, "a regular expression")
    try:
        re.compile(pattern.strip())
    except re.error as error:
        allowed = f"a regular expression ({error})"
        raise OptionError(SUBSCRIBE_PATTERN, pattern, allowed) from error


def _assigned(value: str) -> frozenset[TopicPartition]:
    allowed = 'JSON such as {"topic":[0,1]}'
    try:
        parsed = json.loads(value)
        pairs = [(topic, p) for topic, partitions in parsed.items() for p in partitions]
    except (ValueError, AttributeError, TypeError):
        raise OptionError(ASSIGN, value, allowed) from None
    if not pairs or not all(type(partition) is int for _, partition in pairs):
        raise OptionError(ASSIGN, value, allowed)
    return frozenset(pairs)
