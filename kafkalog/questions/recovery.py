"""What does a broker do to its log directories at its next start, and what is lost then?

Tables: recovery_plan, a row per partition; node_starts, a row per node; log_dir_starts, a row per
log directory; producer_sequences, a row per irregularity in the sequence numbers of idempotent
producers. Rules: docs/format.md F113 to F124 and F960 to F973, docs/recovery.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from kafkalog.columns.table_rows import RowTotals, table_batch
from kafkalog.inspection.groups.coordinator_loading import COORDINATED
from kafkalog.inspection.start.node_directories import NodeFiles
from kafkalog.questions.election_losses import LOST, add_election_losses, lost_by_partition
from kafkalog.questions.groups.coordinators import coordinators
from kafkalog.questions.node_start import (
    DIRECTORIES,
    NODES,
    FoundNodes,
    NodeAnswers,
    NodeRequest,
    has_lost_all,
    node_answers,
)
from kafkalog.storage.log_dir.topic_configs import SERVER_PROPERTIES
from kafkalog.storage.partition_log import PartitionLog, is_selected, those_of
from kafkalog.views.engine import AskedView, Batches, Options, Rows, RowsInMemory, Views
from kafkalog.words import counted, first_names

PLAN, SEQUENCES = "recovery_plan", "producer_sequences"
_NO_LOSSES: Mapping[str, int] = {}
# So many places are named at which consumers stop.
_MOST_STOPS = 5


@dataclass(frozen=True, slots=True)
class RecoveryRequest:
    """How the broker stopped (`shutdown`, as the source's option), `index.interval.bytes` of the
    topics, and the present; which node is judged for which version; options with the settings of
    topics, for retention; the topics and partitions that rows are requested of, all without; and
    the logs of the views, where more is known of them. With `has_findings_only` tasks pass on only
    the rows of partitions with a finding, and those that coordinators load."""

    shutdown: str
    index_interval_bytes: int
    now_ms: int
    node: NodeRequest = field(default_factory=NodeRequest)
    config: Mapping[str, str] = field(default_factory=dict)
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()
    logs: Sequence[PartitionLog] | None = None
    has_findings_only: bool = False

    def asked(self, table: str, nodes: Sequence[NodeFiles] = ()) -> AskedView:
        """Return the view with the rows of a table, about log directories of these nodes."""
        config = self.config
        if self.node.refused_settings:
            # The node does not start with them, and nothing goes by them.
            config = {name: value for name, value in config.items() if name != SERVER_PROPERTIES}
        options: Options = {
            "shutdown": self.shutdown,
            "indexIntervalBytes": self.index_interval_bytes,
            "asOf": self.now_ms,
            **({"kafkaVersion": self.node.version_of(nodes), **config} if table == PLAN else {}),
        }
        reduce = _with_findings if self.has_findings_only and table == PLAN else None
        return AskedView(table, reduce=reduce, options=options, logs=self.logs)

    def asked_sequences(self, views: Views) -> AskedView:
        """Return the view with the rows of table `producer_sequences`."""
        selected = those_of(views.logs, self.topics, self.partitions)
        return replace(self.asked(SEQUENCES), logs=selected)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Rows of table `recovery_plan`, and what they come to; and the nodes that they are of."""

    plan: Sequence[Mapping[str, Any]]
    totals: RecoveryTotals
    findings: Sequence[Mapping[str, Any]]
    nodes: NodeAnswers

    @classmethod
    def of(cls, nodes: NodeAnswers) -> Recovery:
        """Return the plan with its totals and findings, from one pass over its rows."""
        totals = RecoveryTotals()
        findings = []
        for row in nodes.rows:
            totals.add(row)
            if is_finding(row):
                findings.append(row)
        return cls(nodes.rows, totals, findings, nodes)

    @property
    def has_findings(self) -> bool:
        """Whether anything is lost, or does not start, or only under a condition."""
        return bool(self.findings) or self.nodes.has_findings

    def words(self) -> str:
        """Return the last line: whether the nodes start, and what is lost then."""
        ended = [
            each.name
            for each in self.nodes.nodes
            if not (each.start.broker_starts or each.start.files.is_unknown)
        ]
        words = self.totals.words(
            ended,
            knows_metadata=self.nodes.knows_metadata,
            gives_up_metadata=self.nodes.gives_up_metadata,
            absent_directories=sum(len(it.start.files.made_directories) for it in self.nodes.nodes),
            lost_by_election=lost_by_partition(self.findings),
        )
        conditions = [
            f"{each.name} starts {each.condition}"
            for each in self.nodes.nodes
            if each.is_conditional
        ]
        return ": ".join([*conditions, words])

    def table(self, table: str) -> Rows:
        """Return the rows of one of the tables PLAN, NODES and DIRECTORIES, to be written."""
        return RowsInMemory(pa.Table.from_batches([table_batch(table, self.rows(table), {})]))

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        """Return the same rows."""
        if table == NODES:
            return [each.row() for each in self.nodes.nodes]
        if table == DIRECTORIES:
            return [row for each in self.nodes.nodes for row in each.directory_rows()]
        return [*self.plan]


def recovery(views: Views, settings: RecoveryRequest) -> tuple[Recovery, Rows]:
    """Return the plan, and the rows of table `producer_sequences`, which come with it."""
    views, found = _nodes(views, settings)
    asked = settings.asked(PLAN, found.nodes), settings.asked_sequences(views)
    plan, sequences = views.rows(*asked)
    return _with_nodes(views, settings, found, plan), sequences


def recovery_plan(views: Views, settings: RecoveryRequest) -> Recovery:
    """Return the plan alone."""
    views, found = _nodes(views, settings)
    (plan,) = views.rows(settings.asked(PLAN, found.nodes))
    return _with_nodes(views, settings, found, plan)


def _nodes(views: Views, settings: RecoveryRequest) -> tuple[Views, FoundNodes]:
    """Return the nodes, and views of the logs that decide what becomes of the requested ones: all,
    for a node starts as a whole, by its metadata. Copies of logs, which no node is known of, are
    judged each by itself."""
    found = FoundNodes.of(views.log_dirs, views.logs, settings.node)
    selected = those_of(views.logs, settings.topics, settings.partitions)
    if len(selected) < len(views.logs) and all(node.is_unknown for node in found.nodes):
        views = views.over(views.log_dirs, selected)
        found = FoundNodes.of(views.log_dirs, views.logs, settings.node)
    return views, found


def _with_nodes(views: Views, settings: RecoveryRequest, found: FoundNodes, plan: Rows) -> Recovery:
    planned = [*plan]
    ends = {row["directory"]: row["log_end_offset"] for row in planned}
    loads = coordinators(views, settings.node.coordinators(found.nodes), ends)
    answers = node_answers(found, views.logs, settings.node, planned, loads)
    rows = [
        row
        for row in answers.rows
        if is_selected(row["topic"], row["partition"], settings.topics, settings.partitions)
    ]
    if not settings.has_findings_only:
        starts = [each.start for each in answers.nodes]
        add_election_losses(starts, views.logs, rows, settings.now_ms)
    return Recovery.of(replace(answers, rows=rows))


def _with_findings(batches: Batches) -> Batches:
    """Yield the rows that are findings, and those of logs that coordinators load."""
    for batch in batches:
        for number, row in enumerate(batch.to_pylist(maps_as_pydicts="strict")):
            if is_finding(row) or row["topic"] in COORDINATED:
                yield batch.slice(number, 1)


def sequence_words(sequences: Rows) -> str:
    """Return a line about the rows of table `producer_sequences`."""
    if sequences.is_empty:
        return "no irregular sequence numbers"
    return f"{counted(len(sequences.table), 'batch')} with irregular sequence numbers"


def is_finding(row: Mapping[str, Any]) -> bool:
    """Return whether a partition loses something at the start or soon after, has lost it before,
    keeps damage that the broker then serves, or keeps a broker from starting."""
    damage = ("lost_bytes", "missing_offsets", "remaining_faults", "padded_time_indexes")
    if any(row[name] for name in damage) or not row["broker_starts"]:
        return True
    soon = row.get("deleted_soon")
    return bool(
        (row.get("is_set_aside") and row.get("log_end_offset") in (None, 0))
        or row.get("has_leader") is False
        or row.get("leader_reason")
        or row.get("begins_empty")
        or row.get(LOST)
        or row.get("coordinator_error")
        or (soon and not soon["is_expected"])
    )


@dataclass
class RecoveryTotals(RowTotals):
    """How many partitions there are, what is lost of them, and what could be saved."""

    partitions: int = 0
    start_errors: int = 0
    cut_partitions: int = 0
    short_partitions: int = 0
    lost_bytes: int = 0
    salvageable_bytes: int = 0
    salvageable_records: int = 0
    missing_offsets: int = 0
    remaining_faults: int = 0
    padded_time_indexes: int = 0
    set_aside: int = 0
    without_leader: int = 0
    elected_unclean: int = 0
    emptied: int = 0
    uncleanable: int = 0
    refused_groups: int = 0
    deleted_early: int = 0
    is_shortened: bool = False
    stops: list[str] = field(default_factory=list)
    findings: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of table `recovery_plan`."""
        self.partitions += 1
        self.start_errors += not row["broker_starts"]
        self.cut_partitions += bool(row["lost_bytes"])
        self.short_partitions += bool(row["missing_offsets"])
        self.add_values(row, "lost_bytes", "salvageable_bytes", "salvageable_records")
        self.add_values(row, "missing_offsets", "remaining_faults", "padded_time_indexes")
        self.set_aside += bool(row.get("is_set_aside"))
        self.without_leader += row.get("has_leader") is False
        self.uncleanable += bool(row.get("cleaning_stops_at"))
        self.emptied += bool(row.get("begins_empty")) or has_lost_all(row)
        self.elected_unclean += bool(row.get("has_leader") and row.get("leader_reason"))
        self.refused_groups += (row.get("coordinator_error") or {}).get("groups") or 0
        soon = row.get("deleted_soon")
        if soon and not soon["is_expected"]:
            self.deleted_early += soon["records"]
        self.is_shortened |= bool(soon)
        if row.get("consumers_stop_at") is not None:
            self.stops.append(f"{row['topic']}-{row['partition']}@{row['consumers_stop_at']}")
        self.findings += is_finding(row)

    def words(
        self,
        ended: Sequence[str] = (),
        *,
        knows_metadata: bool = True,
        gives_up_metadata: bool = False,
        absent_directories: int = 0,
        lost_by_election: Mapping[str, int] = _NO_LOSSES,
    ) -> str:
        """Return one line: whether a broker starts, and what is lost then. `ended` are the nodes
        that do not start, `lost_by_election` has the records that partitions lose by it."""
        parts = [self._start_words(ended)]
        if absent_directories:
            parts.append(f"BEGIN EMPTY: log directories that do not exist ({absent_directories})")
        parts += [
            f"{label}: {counted(count, noun)}"
            for label, count, noun in (
                ("SET ASIDE", self.set_aside, "partition"),
                ("BEGIN EMPTY", self.emptied, "partition"),
                ("NO LEADER", self.without_leader, "partition"),
                ("UNCLEAN ELECTION", self.elected_unclean, "partition"),
                ("NO COORDINATOR", self.refused_groups, "group"),
                ("CLEANED NO MORE", self.uncleanable, "partition"),
                ("DELETED SOON by a wrong time index", self.deleted_early, "record"),
            )
            if count
        ]
        if self.missing_offsets:
            parts.append(
                f"MISSING by checkpoints or indexes: {counted(self.missing_offsets, 'offset')} at "
                f"the end of {counted(self.short_partitions, 'partition')}"
            )
        if self.lost_bytes:
            parts.append(
                f"LOST: {counted(self.lost_bytes, 'byte')} in "
                f"{counted(self.cut_partitions, 'partition')}, of which "
                f"{counted(self.salvageable_bytes, 'byte')} with "
                f"{counted(self.salvageable_records, 'record')} are sound and can be salvaged"
            )
        if lost_by_election:
            names = [f"{name}: {records:,}" for name, records in lost_by_election.items()]
            parts.append(
                f"LOST BY ELECTION: up to {counted(sum(lost_by_election.values()), 'record')} of "
                f"{counted(len(names), 'partition')} ({first_names(names, _MOST_STOPS)}), by which "
                "broker leads: kafkalog replicas shows what each leader loses"
            )
        if self.remaining_faults:
            parts.append(
                f"{counted(self.remaining_faults, 'fault')} would stay in what it serves: salvage "
                "leaves out damage, and cannot fill a hole in the offsets"
            )
        if self.padded_time_indexes:
            parts.append(
                f"TAKEN FOR 1970: {counted(self.padded_time_indexes, 'segment')} whose time index "
                "ends with zeros: retention by time deletes them soon after the start; remove "
                "their .index and .timeindex first, and the broker recreates them"
            )
        if gives_up_metadata:
            parts.append("METADATA CAN BE GIVEN UP by controllers that are behind")
        elif not self.findings and not ended and not absent_directories:
            words = "nothing is lost" if knows_metadata else "the logs lose nothing"
            parts.append(words + (" but what retention deletes" if self.is_shortened else ""))
        if not knows_metadata:
            parts.append("whether partitions are set aside is NOT KNOWN")
        return "; ".join(parts)

    def _start_words(self, ended: Sequence[str]) -> str:
        if ended:
            return f"NO START of {first_names(ended, _MOST_STOPS)}"
        if self.start_errors:
            return (
                f"NO START: {counted(self.start_errors, 'partition')} of {self.partitions} "
                "would keep a broker from starting"
            )
        starts = f"a broker gets through with all of {counted(self.partitions, 'partition')}"
        if self.stops:
            starts += f", but CONSUMERS STOP at {first_names(self.stops, _MOST_STOPS)}"
        return starts
