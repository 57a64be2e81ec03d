"""The tables of questions as Arrow: each is made as a whole, by the question that its command
asks too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkalog.inspection.metadata.current_topics import find_logs, without_former
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.tables.filters import Filter
from kafkalog.tables.view_source import bytes_of, table_schema
from kafkalog.views.engine import LocalViews
from kafkalog.views.options.options import Isolation, Mode, ReadOptions
from kafkalog.views.options.topics import ALL_TOPICS, TopicChoice
from kafkalog.views.parallel import processes_for

if TYPE_CHECKING:
    from kafkalog.coordination.groups.lag_question import ChosenNames
    from kafkalog.questions.groups.lag_history import LagHistory
    from kafkalog.questions.topics.connectors import Connectors

_EVERY_TOPIC = TopicChoice(subscribe=(ALL_TOPICS,))


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

    def chosen_names(self) -> ChosenNames:
        """Return which rows of groups are selected: those about the chosen topics."""
        from kafkalog.coordination.groups.lag_question import ChosenNames

        if self.options.topics in (TopicChoice(), _EVERY_TOPIC):
            return ChosenNames()
        return ChosenNames(topics=frozenset(log.topic for log in self.logs if log.topic))


def _checksum_report(asked: _Asked) -> pa.Table:
    from kafkalog.questions.checks import checks

    chosen = LocalViews(asked.views.log_dirs, asked.logs, asked.views.processes)
    return checks(chosen, with_indexes=False).report.table


def _transaction_report(asked: _Asked) -> pa.Table:
    from kafkalog.questions.transactions import TransactionSettings, transactions

    settings = TransactionSettings(asked.now_ms, asked.as_of_ms, logs=asked.logs)
    return transactions(asked.views, settings).report.table


def _compaction_findings(asked: _Asked) -> pa.Table:
    from kafkalog.questions.compaction import CompactionRequest, compaction

    at_ms = asked.as_of_ms or asked.now_ms
    request = CompactionRequest(at_ms, before=asked.options.before, logs=asked.logs)
    return compaction(asked.views, request).findings.table


def _consumer_lag(asked: _Asked) -> pa.Table:
    from kafkalog.coordination.groups.lag_question import LagQuestion
    from kafkalog.questions.groups.group_parts import refuse_without_commits
    from kafkalog.questions.groups.lag import ConsumerLag

    refuse_without_commits(asked.views.log_dirs, asked.views.logs)
    question = LagQuestion(
        *(asked.now_ms, asked.as_of_ms, asked.is_committed), chosen=asked.chosen_names()
    )
    lag = ConsumerLag(asked.views, question)
    _ = lag.missing
    return lag.rows.rows().table


def _lag_history(asked: _Asked) -> pa.Table:
    return _history(asked).rows.rows().table


def _group_generations(asked: _Asked) -> pa.Table:
    history = _history(asked)
    history.rows.counted()
    return history.rows.generations().table


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


def _schema_ids(asked: _Asked) -> pa.Table:
    from kafkalog.questions.topics.schema_ids import SchemaIdsRequest, schema_ids

    return schema_ids(asked.views, SchemaIdsRequest(asked.logs)).rows.table


def _key_usage(asked: _Asked) -> pa.Table:
    from kafkalog.questions.topics.key_usage import KeyUsageRequest, key_usage

    return key_usage(asked.views, KeyUsageRequest(asked.logs)).partitions.table


def _heavy_keys(asked: _Asked) -> pa.Table:
    from kafkalog.questions.topics.key_usage import KeyUsageRequest, key_usage

    return key_usage(asked.views, KeyUsageRequest(asked.logs)).heavy.table


def _connectors(asked: _Asked) -> Connectors:
    from kafkalog.questions.topics.connectors import ConnectorsRequest, connectors

    is_all = asked.options.topics in (TopicChoice(), _EVERY_TOPIC)
    return connectors(asked.views, ConnectorsRequest(None if is_all else asked.logs))


def _ksql_statements(asked: _Asked) -> pa.Table:
    from kafkalog.questions.topics.ksql_statements import ksql_statements

    return ksql_statements(asked.views, asked.logs).rows.table


def _mirrors(kind: str, asked: _Asked) -> pa.Table:
    from kafkalog.questions.topics.mirrors import mirrors

    return mirrors(asked.views, asked.logs).rows[kind].table


def _streams_positions(asked: _Asked) -> pa.Table:
    from kafkalog.questions.topics.streams_positions import streams_positions

    return streams_positions(asked.views).rows.table


def _commit_history(asked: _Asked) -> pa.Table:
    from kafkalog.coordination.groups.lag_question import LagQuestion
    from kafkalog.questions.positions.commit_history import commit_history

    question = LagQuestion(asked.now_ms, asked.as_of_ms, asked.is_committed)
    return commit_history(asked.views, question).rows.table


def _kept_positions(asked: _Asked) -> pa.Table:
    from kafkalog.questions.positions.kept_positions import PositionsRequest, positions

    return positions(asked.views, PositionsRequest((), asked.now_ms)).rows.table


def _group_resume(asked: _Asked) -> pa.Table:
    from kafkalog.coordination.groups.lag_question import LagQuestion
    from kafkalog.questions.groups.group_parts import refuse_without_commits
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.questions.positions.group_resume import ResumeRequest, group_resume
    from kafkalog.views.options.offset_reset import OffsetReset

    refuse_without_commits(asked.views.log_dirs, asked.views.logs)
    question = LagQuestion(asked.now_ms, chosen=asked.chosen_names())
    commits = ConsumerLag(asked.views, question).rows.commits_alone()
    request = ResumeRequest(OffsetReset(), asked.now_ms, asked.is_committed)
    return group_resume(asked.views, commits, request).rows.table


_QUESTIONS: Mapping[str, Callable[[_Asked], pa.Table]] = {
    "checksum_report": _checksum_report,
    "commit_history": _commit_history,
    "compaction_findings": _compaction_findings,
    "connector_offsets": lambda asked: _connectors(asked).offsets.table,
    "connector_tasks": lambda asked: _connectors(asked).tasks.table,
    "connectors": lambda asked: _connectors(asked).connectors.table,
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
        views = LocalViews(
            self.options.paths,
            found,
            processes_for(bytes_of(found), self.processes),
            {"mode": self.options.mode.value},
        )
        asked = _Asked(views, chosen, time.time_ns() // 1_000_000, self.options)
        rows = _QUESTIONS[self.table](asked)
        return (part for batch in rows.to_batches() for part in given.rows(batch, columns))

    def _logs(self) -> tuple[list[PartitionLog], list[PartitionLog]]:
        found = find_logs(self.options.paths, strict=self.options.mode is Mode.FAILFAST)
        choice = self.options.topics
        every = choice in (TopicChoice(), _EVERY_TOPIC)
        return found, without_former(found) if every else choice.chosen(found)
