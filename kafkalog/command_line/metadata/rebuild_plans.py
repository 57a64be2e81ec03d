"""What `kafkalog quorum rebuild` would write, from a copy of the metadata or from data, and how it
says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.command_line.answer_output import table_rows
from kafkalog.command_line.terminal import write_table
from kafkalog.coordination.metadata.image import KRAFT_VERSION
from kafkalog.coordination.metadata.releases import ELR_VERSION
from kafkalog.inspection.metadata.cluster_from_data import ClusterFromData, cluster_from_data
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.new_directory import NewDirectory, listener_name
from kafkalog.inspection.metadata.quorum import Quorum, Voter
from kafkalog.inspection.metadata.rebuilt_quorum import Rebuild, refuse_lost_commits
from kafkalog.storage.log_dir.other_entries import absent_lines

# Of the fields of a record what its subject or its GUESSED column does not say already.
_TEXT_FIELDS = {
    "FeatureLevelRecord": ("featureLevel",),
    "TopicRecord": ("topicId",),
    "PartitionRecord": ("replicas", "isr", "leaderEpoch"),
    "ConfigRecord": ("value",),
    "ProducerIdsRecord": ("nextProducerId",),
}
RECORD_COLUMNS = ("record_name", "subject", "value", "guessed")
PLAN_COLUMNS = (
    *("path", "start_offset", "end_offset", "last_epoch", "snapshots", "left_out"),
    *("majority_offset", "voters_before", "voters", "kraft_version", "node_id", "cluster_id"),
    *("directory_id", "epoch"),
)
_UNKNOWN = (
    "not known, and not written: configs of topics, brokers and clients, ACLs, users, quotas, "
    "delegation tokens, features but the above, topics and last partitions without a directory"
)
_LEADERLESS = (
    f"{ELR_VERSION} is set: after an unclean stop partitions can stay without a leader until all "
    "of their brokers are back, or until an unclean election; see "
    "docs/tutorials/controllers-lost.md"
)


@dataclass(frozen=True)
class CopyPlan:
    """The best copy of the metadata goes into the new directory."""

    rebuild: Rebuild

    @classmethod
    def of(cls, paths: Sequence[str]) -> CopyPlan:
        """Plan from the copies under the paths. Raises LogDirError where they contradict each
        other about what was committed."""
        quorum = Quorum(metadata_copies(paths))
        refuse_lost_commits(quorum)
        return cls(Rebuild(quorum))

    @property
    def listener_name(self) -> str:
        """The name of the controllers' listener."""
        return listener_name(self.rebuild.quorum.voters)

    def directory(self, node_id: int, voters: tuple[Voter, ...]) -> NewDirectory:
        """Return what is written beside the records."""
        rebuild = self.rebuild
        cluster_id = rebuild.quorum.best.cluster_id or ""
        return NewDirectory(cluster_id, node_id, voters, rebuild.is_dynamic, rebuild.epoch)

    def write_rows(self, new: NewDirectory, table_format: str) -> None:
        """Print a row, but for text, which `lines` has."""
        rebuild = self.rebuild
        best = rebuild.quorum.best
        row = {
            "path": best.path,
            "start_offset": rebuild.start_offset,
            "end_offset": rebuild.end_offset,
            "last_epoch": best.position[0],
            "snapshots": [each.end_offset for each in rebuild.snapshots],
            "left_out": [str(damage) for damage in best.damages],
            "majority_offset": rebuild.quorum.majority_offset,
            "voters_before": [str(each) for each in rebuild.quorum.voters],
            "voters": [str(each) for each in new.voters],
            "kraft_version": rebuild.quorum.kraft_version,
            "node_id": new.node_id,
            "cluster_id": new.cluster_id,
            "directory_id": new.directory_id,
            "epoch": new.epoch,
        }
        if table_format != "text":
            write_table(tuple(row), table_rows([row], tuple(row), table_format), table_format)

    def lines(self, new: NewDirectory) -> Iterator[str]:
        """Say what is written."""
        rebuild = self.rebuild
        best = rebuild.quorum.best
        last_epoch, end_offset = best.position
        offsets = f"offsets {rebuild.start_offset} to {end_offset - 1}, epoch {last_epoch}"
        yield f"from {best.path}: {offsets}"
        if rebuild.snapshots:
            ends = ", ".join(str(each.end_offset) for each in rebuild.snapshots)
            yield f"snapshots that end at {ends}"
        for damage in best.damages:
            yield f"left out: {damage}"
        held = rebuild.quorum.majority_offset
        if held is None or held < end_offset:
            yield (
                "no majority of the old voters has these records: some that were committed may be "
                "missing, some may not have been committed"
            )
        for copy in rebuild.quorum.copies:
            if copy.damages and copy.node_id != new.node_id:
                yield (
                    f"node {copy.node_id} may not start with its damaged copy: move {copy.path} "
                    "away first, and the node fetches a new one"
                )
        kind = "dynamic" if rebuild.is_dynamic else "static"
        yield f"voters before, {kind}: {'; '.join(map(str, rebuild.quorum.voters)) or 'not known'}"
        yield from _of_directory(new)

    def write(self, new: NewDirectory, target: str) -> None:
        """Write the files into an empty directory."""
        self.rebuild.write(new, target)

    def after_start(self) -> Iterator[str]:
        """Say what to do once the nodes run."""
        if self.rebuild.quorum.replay.image.tables["feature"].get((ELR_VERSION,)):
            yield _LEADERLESS


@dataclass(frozen=True)
class DataPlan:
    """The new directory gets records made from brokers' partition directories. `missing` are lines
    about partitions that only checkpoints name."""

    cluster: ClusterFromData
    missing: tuple[str, ...]

    @classmethod
    def of(
        cls,
        paths: Sequence[str],
        features: Mapping[str, int],
        *,
        creates_missing: bool,
        release: str | None = None,
    ) -> DataPlan:
        """Plan from the log directories under the paths. Raises LogDirError where they contradict
        each other."""
        cluster, found = cluster_from_data(
            paths, features, creates_missing=creates_missing, release=release
        )
        return cls(cluster, tuple(absent_lines(paths, found)))

    @property
    def listener_name(self) -> str:
        """The name of the controllers' listener."""
        return listener_name(())

    def directory(self, node_id: int, voters: tuple[Voter, ...]) -> NewDirectory:
        """Return what is written beside the records."""
        return self.cluster.directory(node_id, voters)

    def write_rows(self, new: NewDirectory, table_format: str) -> None:
        """Print a row for each record."""
        rows: list[dict[str, Any]] = [
            {
                "record_name": each.name,
                "subject": each.subject,
                "value": each.value,
                "guessed": list(each.guessed),
            }
            for each in self.cluster.records
        ]
        if table_format == "text":
            for row in rows:
                row["value"] = {
                    name: row["value"][name] for name in _TEXT_FIELDS[row["record_name"]]
                }
        write_table(
            RECORD_COLUMNS,
            table_rows(rows, RECORD_COLUMNS, table_format),
            table_format,
            texts={"value": _values_text, "guessed": lambda names: ",".join(names) or "-"},
        )

    def lines(self, new: NewDirectory) -> Iterator[str]:
        """Say what else is written, and what is not known."""
        yield from self.missing
        yield _UNKNOWN
        version = self.cluster.features.get(KRAFT_VERSION)
        guessed = " (guessed)" if version is None else ""
        yield f"{KRAFT_VERSION} {version or 0}{guessed}; the epoch below is guessed"
        yield from _of_directory(new)

    def write(self, new: NewDirectory, target: str) -> None:
        """Write the files into an empty directory."""
        self.cluster.write(new, target)

    def after_start(self) -> Iterator[str]:
        """Say what to do once the nodes run."""
        yield (
            "when all brokers run, raise the features to their release: kafka-features.sh upgrade "
            "--release-version VERSION"
        )


def _of_directory(new: NewDirectory) -> Iterator[str]:
    yield f"voters from now on: {'; '.join(map(str, new.voters))}"
    yield (
        f"for node {new.node_id} of cluster {new.cluster_id}, directory.id {new.directory_id}: "
        f"epoch {new.epoch}"
    )


def _values_text(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def next_steps(new: NewDirectory, target: str) -> Iterator[str]:
    """Say what to do with the new directory."""
    places = [
        (each.voter_id, place.partition("://")[2])
        for each in new.voters
        for place in each.end_points
    ]
    yield f"{target} is written: make it log.dirs, or metadata.log.dir, of node {new.node_id}"
    if new.is_dynamic:
        servers = ",".join(place for _, place in places)
        yield f"set controller.quorum.bootstrap.servers={servers} on all nodes"
    else:
        voters = ",".join(f"{voter}@{place}" for voter, place in places)
        yield f"set controller.quorum.voters={voters} on all nodes"
    yield f"start node {new.node_id}, then the brokers; their log directories stay as they are"
