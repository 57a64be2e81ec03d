"""Which transactions are there, how did they end, and what holds back a last stable offset?

Rules: docs/format.md F216 and F1322.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import of_values, record_batch
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.transactional_ids import (
    OpenTransaction,
    OpenTransactionRule,
    State,
    TransactionalIds,
    transaction_words,
)
from kafkalog.inspection.groups.transaction_states import (
    STATES,
    TRANSACTION_STATE_COLUMNS,
    NewestStates,
    is_later,
    open_transaction_rule,
)
from kafkalog.inspection.logs.missing_records import MissingRecords, note_missing_records
from kafkalog.inspection.logs.past_copies import copies_at_time, copy_words
from kafkalog.inspection.logs.replica_facts import replica_sets
from kafkalog.inspection.partitions.transactions import PastTime
from kafkalog.storage.log_dir.absent_coordinators import absent_coordinators
from kafkalog.storage.names import TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.views.engine import AskedView, Batches, Rows, RowsInMemory, Views
from kafkalog.words import counted, duration_text, first_names, time_text

REPORT, STABLE_OFFSETS = "transaction_report", "stable_offsets"
# `transaction.max.timeout.ms` of a broker, by default.
LONGEST_MS = 15 * 60_000
_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_ENDED = "ended_transactions"
# A row is an open transaction, or the number of those of a topic that have ended in one way.
_OPEN_AND_ENDED = arrow_schema(REPORT).append(pa.field(_ENDED, pa.int64()))
# The most partitions that are named.
_MOST_NAMED = 5
# What a coordinator has decided by its state, but not yet written everywhere.
_DECIDED = {"PrepareCommit": "commit", "PrepareAbort": "abort"}
_NOT_KNOWN = "transactions unknown to the coordinators here are not called hanging"

Outcomes = Counter[tuple[str | None, str]]
ByProducer = Mapping[tuple[str | None, int], State]


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The transactions as of a time, or now; after how long an open one can be hanging; those of
    `logs` only, where these are not all; and whether there is a row for those that have ended, or
    for open ones only."""

    now_ms: int
    as_of_ms: int | None = None
    longest_ms: int = LONGEST_MS
    logs: Sequence[PartitionLog] | None = None
    has_ended_rows: bool = True

    @property
    def at_ms(self) -> int:
        """The time that transactions are judged at."""
        return self.now_ms if self.as_of_ms is None else self.as_of_ms

    @property
    def past(self) -> PastTime | None:
        """The past time, None for now."""
        return None if self.as_of_ms is None else PastTime(self.as_of_ms, self.now_ms)


@dataclass(frozen=True, slots=True)
class Transactions:
    """Rows of tables `transaction_report` and `stable_offsets`; how many transactions of a topic
    ended how; what coordinators know of transactional ids; and what makes the answer incomplete, in
    words: absent partitions of `__transaction_state`, and what is not known of a past time; records
    of that topic that the input lacks (F940), which are noted for the end of the run; and what
    coordinators will do about open transactions."""

    report: Rows
    stable_offsets: Rows
    outcomes: Outcomes
    ids: TransactionalIds
    notes: Sequence[str]
    missing: Sequence[MissingRecords]
    coming: Sequence[str]

    def open(self) -> list[dict[str, Any]]:
        """Return the rows of `report` that are open or hanging, those that began first first."""
        found = (row for row in self.report if row["outcome"] in ("open", "hanging"))
        return sorted(found, key=lambda row: row["started_ms"] or row["first_timestamp_ms"] or 0)

    @property
    def totals(self) -> Counter[str]:
        """How many transactions ended how."""
        totals: Counter[str] = Counter()
        for (_, outcome), count in self.outcomes.items():
            totals[outcome] += count
        return totals

    @property
    def has_findings(self) -> bool:
        """Whether a transaction hangs."""
        return self.totals["hanging"] > 0

    def words(self) -> list[str]:
        """Return what coordinators will do about open transactions, and a line that sums all up."""
        held_back = sum((row["offsets_held_back"] or 0) > 0 for row in self.stable_offsets)
        return [*self.coming, transaction_words(self.totals, held_back)]


def transactions(views: Views, settings: TransactionSettings) -> Transactions:
    """Return the transactions of logs, judged by what coordinators' logs say, which are among those
    of the views: if not all of their partitions are, none is called hanging because no coordinator
    knows it. Of several replicas of a partition the best one counts."""
    as_of = {} if settings.as_of_ms is None else {"asOf": settings.as_of_ms}
    past = settings.past
    given = views.logs if settings.logs is None else settings.logs
    logs, others = _counted_logs(views, given, past)
    states, other_states = _states(views, past)
    stable, records = views.rows(AskedView(STABLE_OFFSETS, options=as_of, logs=logs), states)
    coordinators = _Coordinators.of(records, settings.as_of_ms)
    rule, missing = open_transaction_rule(views.logs, settings.at_ms, settings.longest_ms)
    judging = _Judging(rule, coordinators, {_log(row): row["holder_producer_id"] for row in stable})
    if settings.has_ended_rows:
        asked = AskedView("transactions", None, judging, arrow_schema(REPORT), as_of, logs)
        (report,) = views.rows(asked)
        outcomes = _outcomes(report)
    else:
        counting = _EndedCounted(judging)
        asked = AskedView("transactions", None, counting, _OPEN_AND_ENDED, as_of, logs)
        report, outcomes = _open_and_ended(views.rows(asked)[0].table)
    notes = _absent_notes(absent_coordinators(views.logs))
    coming: list[str] = []
    if settings.as_of_ms is None:
        coming += _coming(report, coordinators.by_producer, settings.now_ms)
    else:
        notes += _past_notes(stable, settings.as_of_ms)
        notes += copy_words({log.path: log for log in (*others, *other_states)}.values())
    return Transactions(report, stable, outcomes, coordinators.ids, notes, missing, coming)


def _coming(report: Rows, by_producer: ByProducer, now_ms: int) -> Iterator[str]:
    """Yield what coordinators do about transactions that they know, once they run. F1362"""
    found: dict[tuple[str | None, int], list[str]] = defaultdict(list)
    for row in report:
        if row["outcome"] == "open" and row["reason"] == "known":
            place = f"{row['topic']}-{row['partition']} at offset {row['first_offset']}"
            found[row["cluster_id"], row["producer_id"]].append(place)
    for key, places in [*found.items()][:_MOST_NAMED]:
        state = by_producer[key]
        decision = _DECIDED.get(state["state"])
        if decision is not None:
            does = f"its coordinator has decided to {decision} it, and writes the markers"
        elif state["timeout_ms"] is None or state["started_ms"] is None:
            continue
        else:
            is_over = now_ms - state["started_ms"] > state["timeout_ms"]
            timeout = f"its timeout of {duration_text(state['timeout_ms'])}"
            passed = f"open past {timeout}:" if is_over else f"open; after {timeout}"
            does = f"{passed} its coordinator aborts it"
        yield (
            f"{state['transactional_id']}: {does} once it runs; until then read_committed stops in "
            f"{first_names(places, _MOST_NAMED)}"
        )
    if len(found) > _MOST_NAMED:
        yield f"the same for {counted(len(found) - _MOST_NAMED, 'transaction')} more"


def _counted_logs(
    views: Views, given: Sequence[PartitionLog], past: PastTime | None
) -> tuple[list[PartitionLog], list[PartitionLog]]:
    """Return the logs that are read, of several replicas the best one: in one that is behind,
    transactions are open that have ended. At a past time it is the one that has most of it (F1294);
    those that are not the best ones are returned once more."""
    oldest = {id(log) for log in given if is_oldest_layout(log)}
    sets = replica_sets([log for log in given if id(log) not in oldest])
    chosen = best = [found.best for found in sets]
    if past is not None:
        chosen = copies_at_time(sets, views.tasks, at_ms=past.at_ms, now_ms=past.now_ms)
    counted_ids = oldest | {id(log) for log in chosen}
    others = [log for log, first in zip(chosen, best, strict=True) if log is not first]
    return [log for log in given if id(log) in counted_ids], others


def transactional_ids(
    views: Views, settings: TransactionSettings
) -> tuple[TransactionalIds, list[MissingRecords]]:
    """Return what coordinators know of transactional ids, now or at a past time; and which of their
    records the input lacks (F940), which is noted for the end of the run."""
    missing = note_missing_records(views.logs, TRANSACTION_STATE)
    states, _ = _states(views, settings.past)
    (records,) = views.rows(states)
    return _Coordinators.of(records, settings.as_of_ms).ids, missing


def _states(views: Views, past: PastTime | None) -> tuple[AskedView, list[PartitionLog]]:
    """Return the view of what coordinators know, and the copies that it reads in the place of the
    best ones."""
    of_topic = [log for log in views.logs if log.topic == TRANSACTION_STATE]
    logs, others = _counted_logs(views, of_topic, past)
    newest = NewestStates(None if past is None else past.at_ms)
    topic = {"subscribe": TRANSACTION_STATE}
    columns = TRANSACTION_STATE_COLUMNS
    return AskedView("transaction_states", columns, newest, STATES, topic, logs), others


@dataclass(frozen=True, slots=True)
class _Coordinators:
    """What coordinators know at a time; the producers that they know then; and those that have
    records of a later time only, because the earlier ones have been cleaned away, with the
    transactional ids in these."""

    ids: TransactionalIds
    by_producer: ByProducer
    known_later: Mapping[tuple[str | None, int], str]

    @classmethod
    def of(cls, states: Iterable[State], as_of_ms: int | None) -> _Coordinators:
        ids, later = TransactionalIds(), TransactionalIds()
        for record in states:
            (later if is_later(record["record_timestamp_ms"], as_of_ms) else ids).add(record)
        by_producer = ids.by_producer()
        known_later = {
            key: state["transactional_id"]
            for key, state in later.by_producer().items()
            if key not in by_producer
        }
        return cls(ids, by_producer, known_later)


@dataclass(frozen=True, slots=True)
class _Judging:
    """Makes rows of table `transaction_report` of a task's rows of view `transactions`: adds what
    coordinators know of their producers, and decides on open ones; `holders` are the producers that
    hold last stable offsets."""

    rule: OpenTransactionRule
    coordinators: _Coordinators
    holders: Mapping[tuple[object, ...], int | None]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(REPORT)
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns |= self._added(batch, schema)
            yield pa.RecordBatch.from_arrays(
                [columns[name] for name in schema.names], schema=schema
            )

    def _added(self, batch: pa.RecordBatch, schema: pa.Schema) -> dict[str, pa.Array]:
        """Return the columns that the view lacks, and those that the rule decides."""
        clusters, producers = batch["cluster_id"].to_pylist(), batch["producer_id"].to_pylist()
        keys = [*zip(clusters, producers, strict=True)]
        states = [self.coordinators.by_producer.get(key) for key in keys]
        is_open = pc.equal(batch["outcome"], "open")
        open_rows = batch.filter(is_open).to_pylist()
        of_open = compress(zip(keys, states, strict=True), is_open.to_pylist())
        judged = [
            self.rule.judge(
                *(row, state, self.holders.get(_log(row))),
                is_known_later=key in self.coordinators.known_later,
            )
            for row, (key, state) in zip(open_rows, of_open, strict=True)
        ]
        columns: dict[str, Sequence[object]] = {
            "transactional_id": [
                state["transactional_id"] if state else self.coordinators.known_later.get(key)
                for key, state in zip(keys, states, strict=True)
            ],
            "transaction_state": [state and state["state"] for state in states],
            "at_ms": [self.rule.at_ms] * len(states),
            "is_stable_offset_holder": [False] * len(states),
            **dict.fromkeys(("reason", "started_ms"), [None] * len(states)),
        }
        arrays = {
            name: of_values(values, schema.field(name).type) for name, values in columns.items()
        }
        for number, name in enumerate(OpenTransaction._fields):
            decided = of_values([row[number] for row in judged], schema.field(name).type)
            before = arrays[name] if name in arrays else batch[name]
            arrays[name] = pc.replace_with_mask(before, is_open, decided)
        return arrays


@dataclass(frozen=True, slots=True)
class _EndedCounted:
    """Counts the transactions of a task that have ended, by topic and outcome."""

    judging: _Judging

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield open transactions as rows of the report, and the counts as rows without more."""
        ended: Outcomes = Counter()
        for batch in batches:
            is_open = pc.equal(batch["outcome"], "open")
            for found in self.judging(iter([batch.filter(is_open)])):
                none = pa.nulls(len(found), pa.int64())
                yield pa.RecordBatch.from_arrays([*found.columns, none], schema=_OPEN_AND_ENDED)
            rest = batch.filter(pc.invert(is_open))
            ended.update(zip(rest["topic"].to_pylist(), rest["outcome"].to_pylist(), strict=True))
        if ended:
            topics, outcomes = zip(*ended, strict=True)
            known = {"topic": topics, "outcome": outcomes, _ENDED: [*ended.values()]}
            # `RecordBatch.from_pylist` would import pandas.
            columns = {
                field.name: of_values(known[field.name], field.type)
                if field.name in known
                else pa.nulls(len(ended), field.type)
                for field in _OPEN_AND_ENDED
            }
            yield record_batch(columns, _OPEN_AND_ENDED, len(ended))


def _open_and_ended(found: pa.Table) -> tuple[RowsInMemory, Outcomes]:
    """Return the rows of open transactions, and how many ended how, open ones too."""
    is_open = found[_ENDED].is_null()
    report = RowsInMemory(found.filter(is_open).drop_columns(_ENDED))
    outcomes = _outcomes(report)
    for row in found.filter(pc.invert(is_open)).select(["topic", "outcome", _ENDED]).to_pylist():
        outcomes[row["topic"], row["outcome"]] += row[_ENDED]
    return report, outcomes


def _outcomes(report: Rows) -> Outcomes:
    topics, outcomes = (report.column(name).to_pylist() for name in ("topic", "outcome"))
    return Counter(zip(topics, outcomes, strict=True))


def _absent_notes(absent: Mapping[str | None, Sequence[int]]) -> list[str]:
    """Return which coordinators are not known."""
    if None in absent and len(absent) > 1:
        return [f"not all log directories name their cluster, in meta.properties: {_NOT_KNOWN}"]
    found = [f"{TRANSACTION_STATE}-{each}" for numbers in absent.values() for each in numbers]
    return [f"missing: {first_names(found, _MOST_NAMED)}: {_NOT_KNOWN}"] if absent else []


def _past_notes(stable: Rows, at_ms: int) -> Iterator[str]:
    """Yield what is not exact about a past time, and which partitions are not known then."""
    at = time_text(at_ms)
    yield (
        f"as of {at}: brokers' clocks say which transactions had ended, and producers' clocks, "
        "which can be wrong, which had begun; what retention or cleaning has removed since is not "
        "known"
    )
    columns = (stable.column(name).to_pylist() for name in ("topic", "partition", "end_offset"))
    unknown = [
        f"{topic}-{number}" for topic, number, end in zip(*columns, strict=True) if end is None
    ]
    if unknown:
        head = counted(len(unknown), "partition")
        yield (
            f"not known as of {at}: {head} that have nothing left from then: "
            f"{first_names(sorted(unknown), _MOST_NAMED)}"
        )


def _log(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in _LOG)
