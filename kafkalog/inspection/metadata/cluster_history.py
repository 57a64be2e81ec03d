"""What a cluster's metadata says as of a moment, with what its image forgets: topics that were
deleted, and who led a partition last that has no leader.

Rules: docs/format.md F195, F323 and F329.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafkalog.coordination.metadata.image import END, START, Change, Key, MetadataImage, Moment
from kafkalog.inspection.metadata.copies import MetadataCopy, best_copy, copies_by_cluster
from kafkalog.inspection.metadata.replay import MetadataReplay
from kafkalog.log_lines import logger
from kafkalog.storage.partition_log import PartitionLog

_logger = logger(__name__)


@dataclass
class ClusterHistory:
    """The image of a cluster; the names of topics by their ids, those of deleted ones too; when
    topics were created, as far as the log goes back; and the brokers that led partitions last, by
    topic id and number."""

    image: MetadataImage = field(default_factory=MetadataImage)
    names: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    created_ms: dict[str, int] = field(default_factory=dict)
    leaders: dict[Key, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, image: MetadataImage) -> ClusterHistory:
        """Return the history that begins with an image."""
        found = cls(image)
        for table in ("topic", "partition"):
            for key, row in image.tables[table].items():
                found.take(Change(table, key, None, row, None))
        return found

    def take(self, change: Change, written_ms: int | None = None) -> None:
        """Take a change that the image has taken, and when its record was written."""
        new = change.new
        if change.table == "topic":
            (topic_id,) = change.key
            if new is None:
                self.deleted.add(topic_id)
                return
            self.names[topic_id] = new["topic"]
            if written_ms is not None:
                self.created_ms[topic_id] = written_ms
        elif change.table == "partition" and new is not None and new["leader"] >= 0:
            # A broker that stops leaves its partitions without a leader.
            self.leaders[change.key] = new["leader"]

    def leaders_of(self, topic: str) -> dict[int, int]:
        """Return the last leaders of a topic that is there, by partition."""
        return {key[1]: self.leaders[key] for key in self._keys(topic) if key in self.leaders}

    def replicas_of(self, topic: str) -> dict[int, list[int]]:
        """Return the brokers that the partitions of such a topic are on."""
        return self._of_partitions(topic, "replicas")

    def in_sync_of(self, topic: str) -> dict[int, list[int]]:
        """Return those of them that were in sync."""
        return self._of_partitions(topic, "isr")

    def _of_partitions(self, topic: str, column: str) -> dict[int, list[int]]:
        rows = self.image.tables["partition"]
        return {key[1]: [*rows[key][column]] for key in self._keys(topic)}

    def _keys(self, topic: str) -> list[Key]:
        return self.image.group("partition", self.image.id_of_topic(topic))


def cluster_histories(
    logs: Iterable[PartitionLog], at_ms: int | None = None, *, strict: bool = False
) -> dict[str | None, ClusterHistory]:
    """Return by cluster id what the best copy of each cluster's metadata among the logs says, now
    or at a past time. Damage is logged; with `strict` it raises CorruptDataError."""
    return {
        cluster_id: history_of(copies, at_ms, strict=strict)
        for cluster_id, copies in copies_by_cluster(logs).items()
    }


def history_of(
    copies: Sequence[MetadataCopy], at_ms: int | None = None, *, strict: bool = False
) -> ClusterHistory:
    """Return what the best of several copies says, as `cluster_histories` does."""
    until = END if at_ms is None else Moment(time_ms=at_ms)
    replay = MetadataReplay(best_copy(copies).log, START, until)
    found = ClusterHistory.begun(replay.image)
    for each in replay.changes():
        # What records have done that are lost was done at a time that is not known.
        found.take(each.change, None if each.record_name is None else each.timestamp_ms)
    # Behind damage the replay goes on with the image of a snapshot.
    found.image = replay.image
    for damage in replay.damages:
        if strict:
            raise damage
        _logger.warning("%s: what it has changed is not known", damage)
    return found
