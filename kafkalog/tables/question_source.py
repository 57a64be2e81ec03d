"""The tables of questions as Arrow: each is made as a whole, by the question that its command
asks too. What its rows do not show is logged as warnings, in the words of the command: what could
not be read, and what is assumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from kafkalog.inspection.groups.commit_reach import limit_words
from kafkalog.inspection.logs.past_copies import copy_words
from kafkalog.inspection.metadata.current_topics import find_logs, without_former
from kafkalog.log_lines import logger
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.partition_log import PartitionLog, bytes_in
from kafkalog.tables.filters import Filter
from kafkalog.tables.view_source import EVERY_TOPIC, table_schema, warn_of_absent
from kafkalog.views.engine import LocalViews
from kafkalog.views.options.options import Isolation, Mode, ReadOptions, without_past_words
from kafkalog.views.options.topics import TopicChoice
from kafkalog.views.parallel import processes_for

if TYPE_CHECKING:
    from kafkalog.coordination.groups.lag_question import ChosenNames
    from kafkalog.questions.groups.lag_history import LagHistory


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question is asked with: all logs by processes, those that are chosen, the time, and
    the source's options."""

    views: LocalViews
    logs: list[PartitionLog]
    now_ms: int
    options: ReadOptions

    @property
    def as_of_ms(self) -> int | None:
        """The past time that is asked about, None for now."""
        return self.options.as_of_ms or None

    @property
    def is_committed(self) -> bool:
        """Whether consumers read committed records."""
        return self.options.isolation is Isolation.READ_COMMITTED

    @property
    def is_about_all(self) -> bool:
        """Whether no topics are chosen."""
        return self.options.topics in (TopicChoice(), EVERY_TOPIC)

    def chosen_names(self) -> ChosenNames:
        """Return which rows of groups are selected: those about the chosen topics."""
        from kafkalog.coordination.groups.lag_question import ChosenNames

        if self.is_about_all:
            return ChosenNames()
        return ChosenNames(topics=frozenset(log.topic for log in self.logs if log.topic))


_logger = logger(__name__)


class _Answer(NamedTuple):
    """The rows of a table, and lines about what they do not show."""

    table: pa.Table
    notes: Iterable[str] = ()


def _checksum_report(asked: _Asked) -> _Answer:
    from kafkalog.inspection.metadata.assigned_partitions import (
        cluster_images,
        missing_replica_lines,
    )
    from kafkalog.questions.checks import checks

    chosen = LocalViews(asked.views.log_dirs, asked.logs, asked.views.processes)
    report = checks(chosen, with_indexes=False).report.table
    topics = (
        ()
        if asked.is_about_all
        else sorted({log.topic for log in asked.logs if log.topic is not None})
    )
    views = asked.views
    images = cluster_images(views.logs)
    return _Answer(report, missing_replica_lines(views.log_dirs, views.logs, images, topics, ()))


def _transaction_report(asked: _Asked) -> _Answer:
    from kafkalog.questions.transactions import TransactionSettings, transactions

    settings = TransactionSettings(asked.now_ms, asked.as_of_ms, logs=asked.logs)
    found = transactions(asked.views, settings)
    return _Answer(found.report.table, found.notes)


def _compaction_findings(asked: _Asked) -> _Answer:
    from kafkalog.questions.compaction import CompactionRequest, compaction

    at_ms = asked.as_of_ms or asked.now_ms
    request = CompactionRequest(at_ms, before=asked.options.before, logs=asked.logs)
    found = compaction(asked.views, request)
    is_whole = not (found.totals.unread_bytes or found.totals.unknown_partitions)
    return _Answer(found.findings.table, () if is_whole else (found.words(),))


def _consumer_lag(asked: _Asked) -> _Answer:
    from kafkalog.coordination.groups.lag_question import LagQuestion
    from kafkalog.questions.groups.group_parts import refuse_without_commits
    from kafkalog.questions.groups.lag import ConsumerLag

    refuse_without_commits(asked.views.log_dirs, asked.views.logs)
    question = LagQuestion(
        *(asked.now_ms, asked.as_of_ms, asked.is_committed), chosen=asked.chosen_names()
    )
    lag = ConsumerLag(asked.views, question)
    rows = lag.rows.rows().table
    limits = limit_words(lag.reaches, asked.as_of_ms)
    return _Answer(rows, (*limits, *copy_words(lag.rows.past_copies)))


def _lag_history(asked: _Asked) -> _Answer:
    history = _history(asked)
    rows = history.rows.rows().table
    return _Answer(rows, limit_words(history.reaches, asked.as_of_ms))


def _group_generations(asked: _Asked) -> _Answer:
    history = _history(asked)
    history.rows.counted()
    rows = history.rows.generations().table
    return _Answer(rows, limit_words(history.reaches, asked.as_of_ms))


def _history(asked: _Asked) -> LagHistory:
    from kafkalog.coordination.groups.lag_question import LagHistoryQuestion
    from kafkalog.coordination.groups.lag_status import HistoryMoments
    from kafkalog.questions.groups.group_parts import refuse_without_commits
    from kafkalog.questions.groups.lag_history import LagHistory

    refuse_without_commits(asked.views.log_dirs, asked.views.logs)
    until_ms = asked.as_of_ms or asked.now_ms
    moments = HistoryMoments(0, until_ms, asked.as_of_ms is None, None)
    question = LagHistoryQuestion(
        asked.now_ms, moments, chosen=asked.chosen_names(), read_committed=asked.is_committed
    )
    return LagHistory(asked.views, question)


def _schema_ids(asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.schema_ids import SchemaIdsRequest, schema_ids

    found = schema_ids(asked.views, SchemaIdsRequest(asked.logs))
    return _Answer(found.rows.table, found.notes())


def _key_usage(asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.key_usage import KeyUsageRequest, key_usage

    return _Answer(key_usage(asked.views, KeyUsageRequest(asked.logs)).partitions.table)


def _heavy_keys(asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.key_usage import KeyUsageRequest, key_usage

    return _Answer(key_usage(asked.views, KeyUsageRequest(asked.logs)).heavy.table)


def _connectors(kind: Literal["connectors", "tasks", "offsets"], asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.connectors import ConnectorsRequest, connectors

    request = ConnectorsRequest(None if asked.is_about_all else asked.logs)
    found = connectors(asked.views, request)
    rows = {"connectors": found.connectors, "tasks": found.tasks, "offsets": found.offsets}
    return _Answer(rows[kind].table, found.notes())


def _ksql_statements(asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.ksql_statements import ksql_statements

    found = ksql_statements(asked.views, asked.logs)
    return _Answer(found.rows.table, found.notes())


def _mirrors(kind: str, asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.mirrors import mirrors

    found = mirrors(asked.views, asked.logs)
    return _Answer(found.rows[kind].table, found.notes())


def _streams_positions(asked: _Asked) -> _Answer:
    from kafkalog.questions.topics.streams_positions import streams_positions

    found = streams_positions(asked.views)
    return _Answer(found.rows.table, () if found.has_commits else found.words())


def _commit_history(asked: _Asked) -> _Answer:
    from kafkalog.coordination.groups.lag_question import LagQuestion
    from kafkalog.questions.positions.commit_history import commit_history

    question = LagQuestion(asked.now_ms, asked.as_of_ms, asked.is_committed)
    history = commit_history(asked.views, question)
    return _Answer(history.rows.table, history.reach.splitlines())


def _kept_positions(asked: _Asked) -> _Answer:
    from kafkalog.questions.positions.kept_positions import PositionsRequest, positions

    found = positions(asked.views, PositionsRequest((), asked.now_ms))
    return _Answer(found.rows.table, found.lines)


def _group_resume(asked: _Asked) -> _Answer:
    from kafkalog.coordination.groups.lag_question import LagQuestion
    from kafkalog.questions.groups.group_parts import refuse_without_commits
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.questions.positions.group_resume import ResumeRequest, group_resume
    from kafkalog.views.options.offset_reset import OffsetReset

    refuse_without_commits(asked.views.log_dirs, asked.views.logs)
    question = LagQuestion(asked.now_ms, chosen=asked.chosen_names())
    lag = ConsumerLag(asked.views, question)
    commits = lag.rows.commits_alone()
    request = ResumeRequest(OffsetReset(), asked.now_ms, asked.is_committed)
    rows = group_resume(asked.views, commits, request).rows.table
    assumed = "consumers are taken to have auto.offset.reset=latest, their default"
    return _Answer(rows, (*limit_words(lag.reaches, None), assumed))


_QUESTIONS: Mapping[str, Callable[[_Asked], _Answer]] = {
    "checksum_report": _checksum_report,
    "commit_history": _commit_history,
    "compaction_findings": _compaction_findings,
    "connector_offsets": partial(_connectors, "offsets"),
    "connector_tasks": partial(_connectors, "tasks"),
    "connectors": partial(_connectors, "connectors"),
    "consumer_lag": _consumer_lag,
    "group_generations": _group_generations,
    "group_resume": _group_resume,
    "heavy_keys": _heavy_keys,
    "kept_positions": _kept_positions,
    "key_usage": _key_usage,
    "ksql_statements": _ksql_statements,
    "lag_history": _lag_history,
    "mirror_checkpoints": partial(_mirrors, "checkpoint"),
    "mirror_heartbeats": partial(_mirrors, "heartbeat"),
    "mirror_offset_syncs": partial(_mirrors, "offset-sync"),
    "schema_ids": _schema_ids,
    "streams_positions": _streams_positions,
    "transaction_report": _transaction_report,
}
QUESTION_TABLES = tuple(_QUESTIONS)
# Those that can be asked about a past time.
_OF_THE_PAST = (
    *("commit_history", "compaction_findings", "consumer_lag", "group_generations"),
    *("lag_history", "transaction_report"),
)


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """A table of a question about the logs under paths, with the source's options; how many
    processes read, None for all cores."""

    table: str
    options: ReadOptions
    processes: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, or those of option `columns`. Raises OptionError for one that
        the table does not have."""
        return table_schema(self.table, self.options.columns)

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        _ = self.schema
        use_file_access(self.options.file_access)
        self._logs()

    def batches(self, columns: Sequence[str], given: Filter) -> Iterator[pa.RecordBatch]:
        """Yield the rows that pass the filter. The question is answered now, as a whole."""
        use_file_access(self.options.file_access)
        found, chosen = self._logs()
        warn_of_absent(self.options, found, chosen)
        views = LocalViews(
            self.options.paths,
            found,
            processes_for(bytes_in(found), self.processes),
            {"mode": self.options.mode.value},
        )
        asked = _Asked(views, chosen, time.time_ns() // 1_000_000, self.options)
        rows, notes = _QUESTIONS[self.table](asked)
        if asked.as_of_ms is not None and self.table not in _OF_THE_PAST:
            notes = (without_past_words(self.table), *notes)
        for line in notes:
            _logger.warning("%s", line)
        return (part for batch in rows.to_batches() for part in given.rows(batch, columns))

    def _logs(self) -> tuple[list[PartitionLog], list[PartitionLog]]:
        found = find_logs(self.options.paths, strict=self.options.mode is Mode.FAILFAST)
        choice = self.options.topics
        every = choice in (TopicChoice(), EVERY_TOPIC)
        chosen = without_former(found) if every else choice.chosen(found)
        return found, chosen
