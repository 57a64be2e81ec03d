"""How far behind is each consumer group, and what is its lag made of?

Rules: docs/format.md F310 to F327. Groups that commit to ZooKeeper are not among the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from kafkalog.columns.arrays import no_rows
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.inspection.groups.cluster_facts import facts_of_logs
from kafkalog.inspection.lag.chosen_rows import ChosenNames
from kafkalog.inspection.lag.lag_table import (
    TABLE,
    KnownTopics,
    LagQuestion,
    LogPlace,
    by_log,
    lag_table,
)
from kafkalog.inspection.logs.missing_records import MissingRecords, note_missing_records
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.questions.group_parts import (
    GroupsPart,
    RowsSummary,
    confirmed_clusters,
    group_parts,
    placed_part,
)
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import RowsInMemory, Views
from kafkalog.views.local_views import cluster_metadata, view_options

# Accounts of the logs of one topic are made together: a task has about so many commits.
_COMMITS_PER_TASK = 4096


@dataclass(frozen=True, slots=True)
class ConsumerLag:
    """Rows of table `consumer_lag`, and the records of `__consumer_offsets` that the input lacks
    (F940), which are noted for the end of the run."""

    rows: RowsInMemory
    missing: Sequence[MissingRecords]


@dataclass(frozen=True, slots=True)
class LagSettings:
    """Which lag is requested, and of which groups and topics; what to do about damage."""

    question: LagQuestion
    chosen: ChosenNames = field(default_factory=ChosenNames)
    mode: str = "PERMISSIVE"


def consumer_lag(views: Views, settings: LagSettings) -> ConsumerLag:
    """Return the lag of groups, of all that is on disk, or as of a past time."""
    logs, question = list(views.logs), settings.question
    facts = facts_of_logs(logs, cluster_metadata(views.log_dirs, logs, question.as_of_ms))
    options = view_options(views.log_dirs, "offset_commits", mode=settings.mode)
    names = facts.topic_names()

    def place(part: GroupsPart) -> Iterator[tuple[pa.Table, RowsSummary]]:
        yield placed_part(
            *(part, options, question.as_of_ms),
            topic_names=names,
            facts=facts.of_partition(part.cluster_id, part.partition),
            chosen=settings.chosen,
        )

    placed = list(views.tasks(place, group_parts(options, logs, None)))
    confirmed = confirmed_clusters(summary for _, summary in placed)
    topics = KnownTopics(facts.topics_by_name(), confirmed)
    places = {
        (log.topic, log.partition): LogPlace(log.path, log.log_dir.broker_id)
        for log in best_logs(logs)
        if log.topic is not None and log.partition is not None
    }

    def account(rows: pa.Table) -> Iterator[pa.Table]:
        yield lag_table(rows, places, topics, question)

    found = list(views.tasks(account, _by_logs([rows for rows, _ in placed if len(rows)])))
    whole = pa.concat_tables([no_rows(arrow_schema(TABLE)), *found])
    return ConsumerLag(RowsInMemory(whole), note_missing_records(logs, CONSUMER_OFFSETS))


def _by_logs(placed: Sequence[pa.Table]) -> list[pa.Table]:
    """Return the rows of commits divided for tasks, all about a log in one of them."""
    if not placed:
        return []
    ordered, runs = by_log(pa.concat_tables(placed))
    divided: list[pa.Table] = []
    begin = 0
    for _, _, end in runs:
        if end - begin >= _COMMITS_PER_TASK or end == len(ordered):
            divided.append(ordered.slice(begin, end - begin))
            begin = end
    return divided
