"""The content of a report, as few rows; kafkalog/report/reading says which columns they have."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kafkalog.report.time_grid import TimeGrid


class Row(SimpleNamespace):
    """A row, whose columns are attributes, or items where a name is not known beforehand."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


Rows = Sequence[Row]


def as_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return rows of plain values by column as rows."""
    return [Row(**row) for row in rows]


# When retention deletes a segment, in order of time; the last two are not times.
WHEN = ("now", "day", "week", "month", "later", "stays", "unknown")
# So many keys of a topic are tracked. With no more keys than that, their counts are exact.
TRACKED_KEYS = 8192


@dataclass(frozen=True, slots=True)
class ReportMoment:
    """The time at which groups, transactions and retention are judged, all of them (F942), and
    whether it is that of the run, when the logs are as they are."""

    at_ms: int
    is_now: bool

    @classmethod
    def of(cls, as_of_ms: int | None) -> ReportMoment:
        """Return this moment, or now without one."""
        return cls(time.time_ns() // 1_000_000 if as_of_ms is None else as_of_ms, as_of_ms is None)

    @property
    def now_ms(self) -> int:
        """The time of the run: a clock is ahead if it is ahead of that, not of the moment."""
        return self.at_ms if self.is_now else time.time_ns() // 1_000_000

    @property
    def as_of_ms(self) -> int | None:
        """The moment, None for now."""
        return None if self.is_now else self.at_ms


@dataclass(frozen=True, slots=True)
class StorageSection:
    """What is there: clusters and brokers, the largest topics, what all come to, and what no broker
    serves."""

    owners: Rows
    topics: Rows
    totals: Row
    unserved: Row


@dataclass(frozen=True, slots=True)
class BatchesSection:
    """Sums over batches by topic and stretch of time, by topic and codec, by codec and size; and
    by topic those of control batches, which are in no other sum. `grid` is None where no batch has
    a time. `latest_ms` is a time that hardly any is later than. `later` has the batches of records
    that are later than the moment of the report, which all sums but those of time have too."""

    grid: TimeGrid | None
    latest_ms: int
    by_time: Rows
    by_codec: Rows
    by_size: Rows
    control: Rows
    later: Row


@dataclass(frozen=True, slots=True)
class KeysSection:
    """Keys by topic; whether they are shown, or hashes of them."""

    topics: Rows
    are_shown: bool


@dataclass(frozen=True, slots=True)
class DamageSection:
    """The number of cells; the worst partitions, the first ranges of each, and what all come to;
    some of what is wrong beside their segments, and how much that is: replicas with other records,
    and entries that cannot be read."""

    cells: int
    logs: Rows
    ranges: Rows
    totals: Row
    others: Rows = ()
    all_others: int = 0


@dataclass(frozen=True, slots=True)
class GroupsSection:
    """How many groups there are; the statuses of some, the worst first; what the first of them had
    left to read over time, and their generations; how far commits reach back, in words; some
    partitions of all groups, the worst first, and how many there are; likewise members; and which
    records with commits the input lacks, in words."""

    totals: Row
    statuses: Rows
    series: Rows
    rebalances: Rows
    reach: str
    partitions: Rows = ()
    all_partitions: int = 0
    members: Rows = ()
    all_members: int = 0
    missing: str = ""


@dataclass(frozen=True, slots=True)
class TransactionsSection:
    """Outcomes by topic; the first partitions that are held back, and how many there are; which
    records of coordinators the input lacks, and what else is not exact, in words."""

    outcomes: Rows
    holders: Rows
    held_back: int
    missing: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RetentionSection:
    """What goes when, by topic; the topics whose retention is blocked, and those with segments that
    a broker takes to be of 1970."""

    times: Rows
    blocked: Rows
    padded: Rows = ()


@dataclass(frozen=True, slots=True)
class StartSection:
    """What a broker would do at its next start: the nodes; lines about them; the first partitions
    with findings, and how many there are; and all of it in a sentence."""

    nodes: Rows
    lines: Sequence[str]
    partitions: Rows
    all_partitions: int
    words: str
    has_findings: bool


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """The cluster's metadata as of the time of its last record: some topics, those with most
    partitions without a leader first, and how many there are; brokers with replicas; some settings
    of others than topics, and how many there are; how many ACLs there are."""

    as_of_ms: int | None
    topics: Rows
    all_topics: int
    brokers: Rows
    configs: Rows
    all_configs: int
    acls: int


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report, of the moment `at`; None for what the input does not have. `absent` says in
    words which partitions only checkpoints know."""

    version: str
    at: ReportMoment
    inputs: Sequence[str]
    storage: StorageSection
    batches: BatchesSection
    keys: KeysSection
    damage: DamageSection
    groups: GroupsSection | None
    transactions: TransactionsSection
    retention: RetentionSection
    cluster: ClusterSection | None = None
    start: StartSection | None = None
    absent: Sequence[str] = ()
