"""The content of a report, as small collected rows; their columns are described in
kafkalog/analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Row

from kafkalog.analysis.partitions.batch_totals import TimeGrid

Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class StorageSection:
    """What is there: owners and largest_topics, one row of storage_totals and one of
    unserved_storage."""

    owners: Rows
    topics: Rows
    totals: Row
    unserved: Row


@dataclass(frozen=True, slots=True)
class BatchesSection:
    """Sums of batch_totals by topic and stretch of time, by topic and codec, by codec and size; and
    by topic those of control batches, which are in no other sum. `grid` is None where no batch has
    a time. `latest_ms` is a time that hardly any is later than."""

    grid: TimeGrid | None
    latest_ms: int
    by_time: Rows
    by_codec: Rows
    by_size: Rows
    control: Rows


@dataclass(frozen=True, slots=True)
class KeysSection:
    """key_totals; whether they have keys or hashes."""

    topics: Rows
    are_shown: bool


@dataclass(frozen=True, slots=True)
class DamageSection:
    """The first rows of damage_map, its number of cells, and of first_ranges for them; one row of
    what all partitions come to."""

    cells: int
    logs: Rows
    ranges: Rows
    totals: Row


@dataclass(frozen=True, slots=True)
class GroupsSection:
    """newest_statuses with times in milliseconds, the worst first, of at most some groups, and
    group_totals of all; lag_series and rebalances of the first of them; how far commits reach
    back, in words."""

    totals: Row
    statuses: Rows
    series: Rows
    rebalances: Rows
    reach: str


@dataclass(frozen=True, slots=True)
class TransactionsSection:
    """outcomes_by_topic; stable_offset_holders, the first of them, and how many there are."""

    outcomes: Rows
    holders: Rows
    held_back: int


@dataclass(frozen=True, slots=True)
class RetentionSection:
    """retention_times and blocked_topics."""

    times: Rows
    blocked: Rows


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report, of the time `at_ms`; None for what the input does not have. `absent` says in
    words which partitions only checkpoints know."""

    version: str
    at_ms: int
    inputs: Sequence[str]
    storage: StorageSection
    batches: BatchesSection
    keys: KeysSection
    damage: DamageSection
    groups: GroupsSection | None
    transactions: TransactionsSection
    retention: RetentionSection
    absent: Sequence[str] = ()
