"""The settings of the jobs about consumer lag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_events import HistoryMoments
from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.coordination.groups.lag_status import LagSettings
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

    def missing(self, rows: DataFrame, column: str) -> list[str]:
        """Return the given names that no row has."""
        if not self.names:
            return []
        present = {row[0] for row in rows.select(column).distinct().collect()}
        return sorted(set(self.names) - present)

    def missing_words(
        self, option: str, rows: DataFrame, everything: Callable[[], DataFrame], column: str
    ) -> list[str]:
        """Return a line for each given name that no row has, with the names that there are in
        `everything`."""
        missing = self.missing(rows, column)
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

    @property
    def at_ms(self) -> int:
        """The time that ages and expiry refer to."""
        return self.now_ms if self.as_of_ms is None else self.as_of_ms


@dataclass(frozen=True, slots=True)
class LagHistorySettings:
    """What job lag_history computes: the lag and the statuses of which groups and topics, at which
    times. `now_ms` is the time of the run."""

    now_ms: int
    moments: HistoryMoments
    groups: NameFilter = NameFilter()
    topics: NameFilter = NameFilter()
    read_committed: bool = False
    burrow: BurrowSettings = field(default_factory=BurrowSettings)
    lag: LagSettings = field(default_factory=LagSettings)
