"""What is asked about the lag of groups: of which groups and topics, at which time, for which
consumers. A command line fills these in, and the tasks that make rows have them as they are.

Rules: docs/format.md F310 to F317 (as of a time), F325 (retention), F330 to F337 (statuses).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.coordination.groups.lag_status import HistoryMoments, LagSettings
from kafkalog.words import name_suggestions

MS_PER_MINUTE = 60_000


class ChosenNames(NamedTuple):
    """The names given of groups and of topics, and a regular expression of each; without any, all
    names are chosen."""

    groups: frozenset[str] = frozenset()
    group_pattern: str | None = None
    topics: frozenset[str] = frozenset()
    topic_pattern: str | None = None

    def has(self, group_id: str | None, topic: str | None) -> bool:
        """Return whether a group and a topic are chosen."""
        return is_chosen(group_id, self.groups, self.group_pattern) and is_chosen(
            topic, self.topics, self.topic_pattern
        )

    @property
    def is_group(self) -> Callable[[str], bool] | None:
        """Says of a group whether it is chosen; None where all are."""
        return _choice(self.groups, self.group_pattern)

    @property
    def is_topic(self) -> Callable[[str], bool] | None:
        """Says of a topic whether it is chosen; None where all are."""
        return _choice(self.topics, self.topic_pattern)

    def words_without(
        self, found: FoundNames, everything: Callable[[], Collection[Mapping[str, Any]]]
    ) -> list[str]:
        """Return what `missing_words` does, given the names that rows have; `everything` is called
        where one has none."""
        if self.groups <= found.groups and self.topics <= found.topics:
            return []
        groups = [{"group_id": group, "topic": None} for group in found.groups]
        topics = [{"group_id": None, "topic": topic} for topic in found.topics]
        return self.missing_words(everything(), [*groups, *topics])

    def missing_words(
        self, everything: Collection[Mapping[str, Any]], chosen: Collection[Mapping[str, Any]]
    ) -> list[str]:
        """Return a line for each given name that no chosen row has, with the names in
        `everything` that are like it."""
        columns = (("--group", "group_id", self.groups), ("--topic", "topic", self.topics))
        return [
            f"no rows of {option} {name}{_why_missing(name, column, everything)}"
            for option, column, names in columns
            for name in sorted(names - {row[column] for row in chosen})
        ]


ALL_NAMES = ChosenNames()


class FoundNames(NamedTuple):
    """Those names of groups and topics that rows have, of the names given."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()


def all_names(found: Iterable[FoundNames]) -> FoundNames:
    """Return the names that some rows have."""
    each = list(found)
    return FoundNames(
        frozenset().union(*(names.groups for names in each)),
        frozenset().union(*(names.topics for names in each)),
    )


@dataclass(frozen=True, slots=True)
class LagQuestion:
    """Which lag is requested: that of all that is on disk, or of a past time, `as_of_ms`. Ages are
    as of that, or of `now_ms`, the time of the run. Brokers keep commits of groups without members
    for `retention_ms`. A partition with more than `max_lag` records to read is a finding."""

    now_ms: int
    as_of_ms: int | None = None
    read_committed: bool = False
    retention_ms: int = OFFSETS_RETENTION_MINUTES * MS_PER_MINUTE
    chosen: ChosenNames = ALL_NAMES
    max_lag: int | None = None

    @property
    def at_ms(self) -> int:
        """The time that ages and expiry refer to."""
        return self.now_ms if self.as_of_ms is None else self.as_of_ms


@dataclass(frozen=True, slots=True)
class LagHistoryQuestion:
    """The lag and the statuses of which groups and topics, at which times. `now_ms` is the time of
    the run, and `from_ms` the begin that is requested, None for the first commit. What groups that
    are not chosen have committed shows how far a log had grown."""

    now_ms: int
    moments: HistoryMoments
    from_ms: int | None = None
    chosen: ChosenNames = ALL_NAMES
    read_committed: bool = False
    burrow: BurrowSettings = field(default_factory=BurrowSettings)
    lag: LagSettings = field(default_factory=LagSettings)


def is_chosen(name: str | None, names: frozenset[str], pattern: str | None) -> bool:
    """Return whether a name is one of `names`, or the pattern is found in it. Without names and a
    pattern all are chosen, None too."""
    if not names and pattern is None:
        return True
    if name is None:
        return False
    return name in names or (pattern is not None and re.search(pattern, name) is not None)


def _choice(names: frozenset[str], pattern: str | None) -> Callable[[str], bool] | None:
    if not names and pattern is None:
        return None
    return partial(is_chosen, names=names, pattern=pattern)


def _why_missing(name: str, column: str, everything: Iterable[Mapping[str, Any]]) -> str:
    present = sorted({row[column] for row in everything if row[column] is not None})
    if name in present:
        return ": other options exclude it"
    return f"; in the input: {name_suggestions([name], present)}"
