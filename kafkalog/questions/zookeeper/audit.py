"""Who owns what by ZooKeeper, who should, and what is wrong with what old consumers left there?

A server's tree fits into memory, so this process reads it. Rules: docs/zookeeper.md F448, F466 to
F469.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from kafkalog.coordination.zookeeper.ensemble_clusters import (
    EnsembleCluster,
    is_own,
    members_by_cluster,
)
from kafkalog.errors import LogDirError
from kafkalog.inspection.lag.lag_columns import with_accounts
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.inspection.zookeeper.cluster_trees import refuse_without_cluster
from kafkalog.inspection.zookeeper.consumer_audit_rows import (
    AUDIT_TABLES,
    CONSUMER_FINDINGS,
    HISTORY,
    OWNERSHIP,
    AuditRow,
    audit_rows,
)
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.log_dir_names import LogDirNames, log_dir_names
from kafkalog.storage.log_dir.read_directories import refuse_tables
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Rows, RowsInMemory
from kafkalog.views.options.options import Mode
from kafkalog.views.reading.zookeeper_damage import reported_damage
from kafkalog.words import counted
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.faults import ZooKeeperFinding
from kafkalog.zookeeper.replay import tree_at

_logger = logger(__name__)

_ADVICE = "mode PERMISSIVE reads on with what is sound"
_LOG_FACTS = ("log_start_offset", "high_watermark", "ahead_of_log", "below_log_start")
_COUNTED = pa.schema([(name, pa.int64()) for name in ("number", "committed_offset")])
_BY_LOGS = {"ahead_of_log": "offset_beyond_log_end", "below_log_start": "offset_below_log_start"}
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The data directories of ZooKeeper's servers, the log directories whose logs and topics are
    compared, what to do about damage in ZooKeeper's files, and the present."""

    data_dirs: Sequence[DataDir]
    log_dirs: Sequence[LogDirNames]
    now_ms: int
    mode: Mode = Mode.PERMISSIVE


@dataclass(frozen=True, slots=True)
class Audit:
    """Rows of tables `partition_ownership`, `consumer_findings` and `ownership_history`; and each
    cluster as each server given has it, the newest first."""

    ownership: Rows
    findings: Rows
    history: Rows
    clusters: Sequence[Sequence[EnsembleCluster]]

    @property
    def tables(self) -> dict[str, Rows]:
        """The rows by the names of their tables."""
        return dict(zip(AUDIT_TABLES, (self.ownership, self.findings, self.history), strict=True))

    @property
    def has_findings(self) -> bool:
        """Whether anything is wrong."""
        return not self.findings.is_empty

    def words(self) -> list[str]:
        """Return lines: where each cluster is, how much is owned and assigned, what is wrong."""
        owned = [*self.ownership]
        groups = {(row["input_path"], row["chroot"], row["group_id"]) for row in owned}
        owners, assigned = (
            sum(row[name] is not None for row in owned) for name in ("owner", "assigned")
        )
        head = (
            f"{counted(len(groups), 'group')}, {counted(len(owned), 'partition')}: "
            f"{owners:,} owned, {assigned:,} assigned; "
            f"{counted(len(self.history.table), 'claim')} in the history"
        )
        return [*_members_words(self.clusters), head, *_finding_words(self.findings)]


def audit(settings: AuditSettings) -> Audit:
    """Return the audit of each cluster as the member of its ensemble has it that has come furthest.

    Raises CorruptDataError for damage with mode FAILFAST, DataLossError for a file that was purged
    meanwhile, LogDirError where no cluster is in any of the data directories.
    """
    every = [*_all_rows(settings)]
    if not every:
        dirs = settings.data_dirs
        refuse_without_cluster({each.path: tree_at(each, None, _passed_over) for each in dirs})
    clusters = members_by_cluster({_cluster(path, row) for path, row in every})
    newest = {(members[0].input_path, members[0].chroot) for members in clusters}
    chosen = [each for each in every if (each[0], each[1].place.chroot) in newest]
    ids = {row.place.cluster_id for _, row in chosen} - {None}
    owned = [_placed(path, row) for path, row in chosen if row.table == OWNERSHIP]
    found = [
        _placed(path, row)
        for path, row in chosen
        # No finding: a log directory of a cluster that another input has.
        if row.table == CONSUMER_FINDINGS
        and row.values.get("finding") is not None
        and (row.values.get("other_cluster_id") or "") not in ids
    ]
    found += _compare_with_logs(owned, settings, [each for some in clusters for each in some])
    history = [_placed(path, row) for path, row in chosen if row.table == HISTORY]
    return Audit(
        RowsInMemory.of(OWNERSHIP, owned),
        RowsInMemory.of(CONSUMER_FINDINGS, found),
        RowsInMemory.of(HISTORY, history),
        clusters,
    )


def compared_log_dirs(paths: Sequence[str], output_dir: str = "") -> list[LogDirNames]:
    """Return what is in log directories. Raises LogDirError for a path that is not a directory,
    OptionError for an output in one."""
    for path in paths:
        if not log_dir_names([path]):
            raise LogDirError(f"{path}: no such directory on this machine")
    found = log_dir_names(paths)
    if output_dir:
        refuse_tables(output_dir, [log_dir.path for log_dir in found])
    return found


def _all_rows(settings: AuditSettings) -> Iterator[tuple[str, AuditRow]]:
    for data_dir in settings.data_dirs:
        with reported_damage(data_dir, settings.mode, _ADVICE) as report:
            for row in audit_rows(data_dir, settings.log_dirs, report):
                yield data_dir.path, row


def _passed_over(_: ZooKeeperFinding) -> None:
    """Say nothing of damage, which has been reported before."""


def _cluster(path: str, row: AuditRow) -> EnsembleCluster:
    return EnsembleCluster(path, row.place.chroot, row.place.cluster_id, row.place.made, row.zxid)


def _placed(path: str, row: AuditRow) -> _Row:
    place = {"cluster_id": row.place.cluster_id, "chroot": row.place.chroot}
    return {"input_path": path, **place, **row.values}


class _Place(NamedTuple):
    """A partition of a cluster."""

    cluster_id: str | None
    topic: str
    partition: int


def _compare_with_logs(
    owned: Sequence[_Row], settings: AuditSettings, clusters: Sequence[EnsembleCluster]
) -> Iterator[_Row]:
    """Add where the logs of a cluster begin and end to its rows of table partition_ownership, with
    findings about offsets that they do not have; yield these as rows of consumer_findings.
    Partitions of Kafka 0.7, whose offsets are positions, are not compared."""
    by_place: dict[_Place, list[_Row]] = {}
    for row in owned:
        offset = row["committed_offset"]
        if row["broker_id"] is None and offset is not None and offset >= 0:
            place = _Place(row["cluster_id"], row["topic"], row["partition"])
            by_place.setdefault(place, []).append(row)
    for cluster_id, logs in cluster_logs(settings.log_dirs, clusters):
        for log in best_logs(logs):
            place = _Place(cluster_id, log.topic or "", log.partition or 0)
            yield from _compared(by_place.get(place, []), log, settings.now_ms)


def _compared(rows: Sequence[_Row], log: PartitionLog, now_ms: int) -> Iterator[_Row]:
    if not rows:
        return
    asked = [
        {"number": number, "committed_offset": row["committed_offset"]}
        for number, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(asked, schema=_COUNTED)
    counted_lag = with_accounts(table, log, read_committed=False, now_ms=now_ms)
    for row, facts in zip(rows, counted_lag.select(list(_LOG_FACTS)).to_pylist(), strict=True):
        row |= {name: facts[name] for name in _LOG_FACTS[:2]}
        names = [finding for name, finding in _BY_LOGS.items() if (facts[name] or 0) > 0]
        row["findings"] = [*row["findings"], *names]
        detail = (
            f"offset {row['committed_offset']}, the log has {facts['log_start_offset']} to "
            f"{facts['high_watermark']}"
        )
        yield from ({**row, "finding": name, "detail": detail} for name in names)


def cluster_logs(
    log_dirs: Sequence[LogDirNames], clusters: Sequence[EnsembleCluster]
) -> Iterator[tuple[str | None, list[PartitionLog]]]:
    """Yield the ids of the clusters that have log directories, and their logs. Where there is but
    one cluster, it has those as well that name none."""
    is_only = len(members_by_cluster(clusters)) == 1
    for cluster_id in sorted({each.cluster_id for each in clusters}, key=str):
        own = [
            log_dir.path
            for log_dir in log_dirs
            if is_own(cluster_id, log_dir.cluster_id)
            and (is_only or log_dir.cluster_id is not None)
        ]
        try:
            logs = find_logs(own, strict=False)
        except LogDirError as error:  # copies: which of them counts is unknown
            _logger.warning("offsets are not compared with logs: %s", error)
            continue
        if logs:
            yield cluster_id, logs


def _members_words(clusters: Sequence[Sequence[EnsembleCluster]]) -> Iterator[str]:
    """Say where each cluster is, and which of its members is read: the first, which is the
    newest."""
    for cluster in clusters:
        for member in cluster:
            place = f"cluster {member.cluster_id or 'without an id'} at {member.chroot or '/'}"
            note = "" if member is cluster[0] else ", not the newest"
            yield f"{place}, as of zxid {member.zxid:#x}: {member.input_path}{note}"


def _finding_words(findings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say how often each finding occurs, with the first of them."""
    counts, first = Counter[str](), dict[str, str]()
    for row in findings:
        about = (row["group_id"], row["topic"], row["partition"], row["detail"])
        text = " ".join(str(each) for each in about if each is not None)
        counts[row["finding"]] += 1
        first[row["finding"]] = min(text, first.get(row["finding"], text))
    for finding in sorted(counts):
        yield f"{finding}: {counts[finding]:,}, {first[finding]}"
