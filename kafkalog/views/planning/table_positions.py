"""The offsets that a table holds of partitions, by its commits, and partitions as they are found,
from which it goes on. Tables of state and of records keep positions in the same way.

Rules: docs/format.md F273 to F280, docs/ingest.md F530 to F534.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

from kafkalog.errors import StatePositionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.offset_ranges import DoubtfulRecord, TimeRule, doubt_words
from kafkalog.storage.reading.read_plan import CommittedRead
from kafkalog.views.options.offset_options import by_partition, by_topic
from kafkalog.words import counted

# Where a read ends whose end was requested.
ASKED = "asked"
ELSEWHERE = "another --output-dir keeps both"
# How a field with a value for each partition stands in JSON.
BY_PARTITION = MappingProxyType({"write": by_topic, "read": by_partition})


@dataclass(frozen=True, slots=True)
class StateSource:
    """A partition as it is found: the offsets [log_start_offset, end_offset) make up its state.

    `start_offset` is the first that is requested; `segments` are those of the replica that counts,
    `logs` all replicas as they were listed.
    `cleaner_checkpoint` is None where the cleaner has not been, or nothing says whether it has:
    then `missing_until` is up to where offsets that are missing say so (F1425). `end_from` says
    what the end is: log_end, high_watermark, last_stable_offset or asked. `committed` is what
    reading only committed records up to there needs to know. `passed_over` are the records whose
    time is doubtful by the `time_rule`, so that they did not bound the range (F930). `log` is the
    replica that is read: where `best_path` is not None another one than the best, which is there
    (F1294).
    `ends_before_time`: no record that is read is as late as the requested time.
    """

    topic: str
    partition: int
    log_start_offset: int
    end_offset: int
    end_from: str = "log_end"
    log_end_offset: int = 0
    cleaner_checkpoint: int | None = None
    missing_until: int = 0
    cluster_id: str | None = None
    broker_id: int | None = None
    input_path: str = ""
    topic_id: str | None = None
    leader_epochs: tuple[EpochStart, ...] = ()
    start_offset: int = 0
    segments: Sequence[SegmentFile] = ()
    logs: tuple[PartitionLog, ...] = ()
    committed: CommittedRead | None = None
    passed_over: tuple[DoubtfulRecord, ...] = ()
    time_rule: TimeRule | None = None
    log: PartitionLog | None = None
    best_path: str | None = None
    ends_before_time: bool = False

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def exact_from_offset(self) -> int:
        """From which end on the files hold all that counts: below, values may be cleaned away. Of
        a past moment of a log that begins after offset 0 nothing says what had been deleted by
        then: only the state at its end is exact. F274, F1425"""
        if self.is_past and self.log_start_offset:
            return self.log_end_offset
        return max(self.log_start_offset, self.cleaner_checkpoint or self.missing_until)

    @property
    def is_past(self) -> bool:
        """Whether the state is that of an earlier moment than the log's end."""
        return self.end_from == ASKED and self.end_offset < self.log_end_offset

    @property
    def is_exact(self) -> bool:
        return self.end_offset >= self.exact_from_offset

    @property
    def doubt(self) -> str:
        """Return what to report of a state that is not exact."""
        cleaned = self.cleaner_checkpoint or self.missing_until
        if cleaned <= self.end_offset:
            why = (
                f"the log begins at offset {self.log_start_offset}: what was below it had been "
                "deleted by then, or was deleted later, or was not copied"
            )
        elif self.cleaner_checkpoint is None:
            why = (
                f"offsets below {cleaned} are missing, and no cleaner-offset-checkpoint is beside "
                "the log, so the cleaner has removed records: keys may lack their value of that "
                "time or, in a copy by kafkalog undelete, have an older one"
            )
        else:
            why = "the cleaner has removed records, and keys may lack their value of that time"
        return (
            f"NOT EXACT: {self.name} at offset {self.end_offset}: {why}; a state at offset "
            f"{self.exact_from_offset} or later is exact"
        )

    @property
    def wrong_times(self) -> str | None:
        """Say which records were passed over, None without any."""
        return self.words_for(self.passed_over)

    def words_for(self, found: Sequence[DoubtfulRecord]) -> str | None:
        """Say what is doubtful about the times of some of these records, None without any."""
        if not found or self.time_rule is None:
            return None
        first = f"offset {found[0].offset}: {doubt_words(found[0], self.time_rule)}"
        if len(found) == 1:
            return first
        others = counted(len(found) - 1, "record")
        return f"{first}; and {others} more with such times up to offset {found[-1].offset}"

    def leader_epoch_before(self, offset: int) -> int | None:
        """Return the leader epoch of the record before an offset, None if the files do not say."""
        epochs = [each.epoch for each in self.leader_epochs if each.start_offset < offset]
        return epochs[-1] if epochs else None


@dataclass(frozen=True, slots=True)
class TablePositions:
    """What a version of a table holds: of each partition all below its next offset. The leader
    epochs are those of the records before these offsets, where the files said it.

    `job` writes the table, which has `rows`.
    """

    job: ClassVar[str]
    rows: ClassVar[str]

    isolation_level: str
    cluster_id: str | None = field(default=None, kw_only=True)
    next_offsets: Mapping[TopicPartition, int] = field(
        default_factory=dict, kw_only=True, metadata=BY_PARTITION
    )
    leader_epochs: Mapping[TopicPartition, int] = field(
        default_factory=dict, kw_only=True, metadata=BY_PARTITION
    )
    topic_ids: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def to_json(self) -> str:
        """Return the text that goes into the table's commit: the job, and each field by its
        name."""
        own = {
            each.name: _converted(each.metadata.get("write"), getattr(self, each.name))
            for each in fields(self)
        }
        return json.dumps({"job": self.job, **own}, default=asdict)

    @classmethod
    def from_json(cls, text: str | None) -> Self | None:
        """Return the positions in a commit's text; None where it is not this job's."""
        try:
            found = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(found, dict) or found.get("job") != cls.job:
            return None
        return cls(
            **{
                each.name: _converted(each.metadata.get("read"), found[each.name])
                for each in fields(cls)
            }
        )

    def without_partitions(self, keys: Collection[TopicPartition]) -> Self:
        """Return the positions of the other partitions; of no cluster where none is left."""
        kept = {key: each for key, each in self.next_offsets.items() if key not in keys}
        topics = {topic for topic, _ in kept}
        epochs = self.leader_epochs.items()
        return replace(
            self,
            cluster_id=self.cluster_id if topics else None,
            next_offsets=kept,
            leader_epochs={key: each for key, each in epochs if key not in keys},
            topic_ids={topic: each for topic, each in self.topic_ids.items() if topic in topics},
        )

    def replaced_by(self, sources: Iterable[StateSource]) -> frozenset[TopicPartition]:
        """Return whose rows a full refresh from the sources replaces: their own and, of topics of
        another cluster and of those that were created again, all that the table has."""
        replaced: set[TopicPartition] = set()
        for source in sources:
            replaced.add(source.key)
            if self.is_of_other_cluster(source) or self.is_recreated(source):
                replaced |= {key for key in self.next_offsets if key[0] == source.topic}
        return frozenset(replaced)

    def refuse_other_cluster(self, source: StateSource) -> None:
        """Raise StatePositionError where the table holds another cluster's partitions."""
        if self.is_of_other_cluster(source):
            raise StatePositionError(
                f"the table holds {self.rows} of cluster {self.cluster_id}, {source.input_path} is "
                f"of cluster {source.cluster_id}: {ELSEWHERE}"
            )

    def is_of_other_cluster(self, source: StateSource) -> bool:
        """Return whether the table holds another cluster's partitions."""
        return _is_other(self.cluster_id, source.cluster_id)

    def is_recreated(self, source: StateSource) -> bool:
        """Return whether the table holds the topic with another id."""
        return _is_other(self.topic_ids.get(source.topic), source.topic_id)

    def recreated_words(self, source: StateSource) -> str | None:
        """Say that the table holds the topic with another id, None where it does not."""
        if not self.is_recreated(source):
            return None
        return (
            f"the table holds topic {source.topic} with the id {self.topic_ids[source.topic]}, in "
            f"{source.input_path} it has the id {source.topic_id}: it was deleted and recreated"
        )

    def rewritten_words(self, source: StateSource, position: int) -> str | None:
        """Say that the record before a position is another one by now, None where it is not known
        to be: its leader epoch differs."""
        recorded, found = self.leader_epochs.get(source.key), source.leader_epoch_before(position)
        if recorded is None or found is None or recorded == found:
            return None
        return (
            f"offset {position - 1} is of leader epoch {found}, when the table read it it was of "
            f"{recorded}: the log was truncated and written again"
        )


def _converted(convert: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def _is_other(recorded: str | None, found: str | None) -> bool:
    """Return whether two ids, of a cluster or a topic, are known and differ."""
    return bool(recorded and found and recorded != found)
