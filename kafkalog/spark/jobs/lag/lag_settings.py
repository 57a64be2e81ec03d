"""The settings of the jobs about consumer lag."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.inspection.lag.chosen_rows import ChosenNames
from kafkalog.inspection.lag.lag_table import LagQuestion
from kafkalog.views.options.lag_options import LagRequest
from kafkalog.words import name_suggestions

_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Selects the names given and those in which a regular expression is found; without either,
    all names."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    def matching(self, rows: DataFrame, column: str) -> DataFrame:
        """Return the rows whose column has a selected name."""
        if not self.names and self.pattern is None:
            return rows
        is_selected = F.col(column).isin(*self.names)
        if self.pattern is not None:
            is_selected = is_selected | F.col(column).rlike(self.pattern)
        return rows.where(is_selected)

    def missing_words(
        self, option: str, rows: DataFrame, everything: Callable[[], DataFrame], column: str
    ) -> list[str]:
        """Return a line for each given name that no row has, with the names that there are in
        `everything`."""
        return self.words_without(option, self.found_in(rows, column), everything, column)

    def found_in(self, rows: DataFrame, column: str) -> frozenset[str]:
        """Return the given names that rows have."""
        found = rows.select(column).distinct().collect() if self.names else []
        return frozenset(self.names) & {row[0] for row in found}

    def words_without(
        self, option: str, found: Collection[str], everything: Callable[[], DataFrame], column: str
    ) -> list[str]:
        """Return the same, given the names that rows have."""
        missing = sorted(set(self.names) - set(found))
        if not missing:
            return []
        names = everything().select(column).where(F.col(column).isNotNull()).distinct()
        present = [row[0] for row in names.sort(column).limit(_MOST_NAMES).collect()]
        reasons = {
            name: ": other options exclude it"
            if name in present
            else f"; in the input: {name_suggestions([name], present)}"
            for name in missing
        }
        return [f"no rows of {option} {name}{reason}" for name, reason in reasons.items()]


@dataclass(frozen=True, slots=True)
class ConsumerLagSettings:
    """What job consumer_lag computes: the lag of which groups and topics, as of which time.

    `as_of_ms` is None for the state on disk. `now_ms` is the time of the run: ages are as of
    `as_of_ms`, or as of `now_ms` without it. A partition with more than `max_lag` records to read
    is a finding.
    """

    now_ms: int
    groups: NameFilter = NameFilter()
    topics: NameFilter = NameFilter()
    read_committed: bool = False
    as_of_ms: int | None = None
    retention_ms: int = OFFSETS_RETENTION_MINUTES * 60_000
    max_lag: int | None = None

    @classmethod
    def of(cls, request: LagRequest, now_ms: int) -> ConsumerLagSettings:
        """Return what is requested."""
        return cls(
            now_ms,
            NameFilter(request.groups, request.group_pattern),
            NameFilter(request.topics, request.topic_pattern),
            request.read_committed,
            request.as_of,
            request.offsets_retention * 60_000,
            request.max_lag,
        )

    @property
    def question(self) -> LagQuestion:
        """What tasks are asked."""
        return LagQuestion(self.now_ms, self.as_of_ms, self.read_committed, self.retention_ms)

    @property
    def chosen(self) -> ChosenNames:
        """The rows that tasks leave out, and which of the given names they look for."""
        return _chosen(self.groups, self.topics)


def _chosen(groups: NameFilter, topics: NameFilter) -> ChosenNames:
    return ChosenNames(
        *(frozenset(groups.names), groups.pattern), *(frozenset(topics.names), topics.pattern)
    )
