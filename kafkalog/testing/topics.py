"""Topics of a log directory that a test makes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence

from kafkalog.arguments import known_arguments
from kafkalog.errors import OptionError
from kafkalog.format.record_batch import BatchFields
from kafkalog.format.records import Record
from kafkalog.storage.writing.partition_output import check_partition
from kafkalog.testing.made_logs import MadeLog
from kafkalog.testing.made_records import (
    Clock,
    Field,
    ProducerRecord,
    field_bytes,
    record_at,
    sent_record,
)
from kafkalog.wire.compression import CompressionType
from kafkalog.wire.murmur2 import partition_of_key

_CODECS = {codec.name.lower(): codec for codec in CompressionType}
_DAY_MS = 24 * 60 * 60 * 1000

# Records, or just keys and values.
Sent = Iterable[ProducerRecord | tuple[Field, Field]]
# Puts records, whose offsets begin at the log's end, into a log.
Append = Callable[[MadeLog, Sequence[Record]], None]


@known_arguments
class Topic:
    """A topic to write to, made by `LogDirectory.topic`. Times come from its clock."""

    def __init__(
        self,
        name: str,
        partitions: int,
        clock: Clock,
        *,
        compression: str = "none",
        topic_id: str | None = None,
    ) -> None:
        if partitions < 1:
            raise OptionError("partitions", partitions, "1 or more")
        if compression not in _CODECS:
            raise OptionError("compression", compression, tuple(_CODECS))
        check_partition(name, partitions - 1)
        self.name = name
        self.compression = _CODECS[compression]
        made_id = _topic_id_of(name) if topic_id is None else topic_id
        self.logs = tuple(MadeLog(name, number, made_id) for number in range(partitions))
        self._clock = clock

    def records(self, records: Sent, *, partition: int | None = None) -> None:
        """Append records, `ProducerRecord`s or tuples of key and value: one batch in each partition
        that gets any. Raises RowError if an item is not a record.

        Without `partition` a record's key chooses, as with Kafka's producers (F610); records
        without a key go to partition 0 then.
        """
        fields = BatchFields(compression=self.compression)
        self.send(records, partition, lambda log, batch: log.append_records(batch, fields))

    def send(self, records: Sent, partition: int | None, append: Append) -> None:
        """Give each partition its records, in the order of the partitions' numbers."""
        by_partition: dict[int, list[ProducerRecord]] = {}
        for given in records:
            record = sent_record(given)
            number = self._partition_of(record) if partition is None else partition
            by_partition.setdefault(number, []).append(record)
        for number, sent in sorted(by_partition.items()):
            log = self.log(number)
            first = log.next_offset
            append(
                log,
                [record_at(each, first + place, self._clock) for place, each in enumerate(sent)],
            )

    def roll(self, *, partition: int = 0) -> None:
        """Let what follows be in a new segment."""
        self.log(partition).roll()

    def delete_records(self, before_offset: int, *, partition: int = 0) -> None:
        """Let the log begin at an offset, as `kafka-delete-records` does; segments before it are
        deleted. Raises OptionError for one that the log does not have."""
        self.log(partition).delete_records(before_offset)

    def compact(self, *, partition: int = 0, delete_retention_ms: int = _DAY_MS) -> None:
        """Begin a new segment and clean those before it, as a broker's cleaner does: of each key
        the last record stays, offsets keep their gaps, aborted records go. A tombstone stays until
        a compaction that comes `delete_retention_ms` after the first."""
        self.log(partition).compact(self._clock.now_ms, delete_retention_ms)

    def flip_byte(self, offset: int, *, partition: int = 0) -> None:
        """Damage the batch that holds an offset: its checksum will be wrong. Raises OptionError if
        there is none."""
        self.log(partition).flip_byte(offset)

    def cut_tail(self, size: int, *, partition: int = 0) -> None:
        """Damage the newest segment that has records: its last `size` bytes will be missing."""
        self.log(partition).cut_tail(size)

    def log(self, partition: int) -> MadeLog:
        """Return one partition's log. Raises OptionError if the topic has no such partition."""
        if not 0 <= partition < len(self.logs):
            raise OptionError("partition", partition, f"0 to {len(self.logs) - 1} of {self.name}")
        return self.logs[partition]

    def _partition_of(self, record: ProducerRecord) -> int:
        key = field_bytes(record.key)
        return 0 if key is None else partition_of_key(key, len(self.logs))


def _topic_id_of(name: str) -> str:
    """Return an id that is always the same for a name, as Kafka prints ids."""
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
