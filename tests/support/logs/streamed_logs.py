"""Logs that grow while a stream reads them, and a stream that is driven as Spark drives it."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.spark.source.data_source import KafkaLogDataSource
from kafkalog.spark.source.limited_stream_reader import LimitedStreamReader
from kafkalog.spark.source.projection import view_schema
from kafkalog.views.options.stream_options import stream_options

# Of a partition the offsets that came out, in the order in which they did.
Read = dict[tuple[str, int], list[int]]


class StreamedLog:
    """A partition's directory, written to as brokers write: appended to, rolled, cleaned, and with
    its oldest segments deleted."""

    def __init__(self, log_dir: Path, topic: str, partition: int, seed: int = 0) -> None:
        self.path = log_dir / f"{topic}-{partition}"
        self.path.mkdir(parents=True)
        self.key = topic, partition
        self._random = random.Random(f"{seed} {topic} {partition}")
        self._segments: dict[int, list[list[Record]]] = {0: []}
        self.next_offset = 0
        self.write()

    @property
    def offsets(self) -> list[int]:
        """Those of all records that are there."""
        batches = (batch for segment in self._segments.values() for batch in segment)
        return [record.offset for batch in batches for record in batch]

    @property
    def log_file(self) -> Path:
        """The file of the last segment."""
        return self.path / f"{max(self._segments):020d}.log"

    def append(self, batches: int = 1, records: int | None = None) -> None:
        for _ in range(batches):
            count = self._random.randint(1, 5) if records is None else records
            batch = [self._record(self.next_offset + number) for number in range(count)]
            self._segments[max(self._segments)].append(batch)
            self.next_offset += count
        self.write()

    def roll(self) -> None:
        self._segments.setdefault(self.next_offset, [])
        self.write()

    def clean(self) -> None:
        """Take records out of all segments but the last, as the cleaner does; batches stay."""
        for base_offset in sorted(self._segments)[:-1]:
            batches = self._segments[base_offset]
            kept = [[each for each in batch if self._random.random() < 0.6] for batch in batches]
            self._segments[base_offset] = [batch for batch in kept if batch]
        self.write()

    def delete_up_to(self, offset: int) -> None:
        """Delete the segments that end at the offset or before, as retention does."""
        bases = sorted(self._segments)
        for base_offset, follower in itertools.pairwise(bases):
            if follower <= offset:
                del self._segments[base_offset]
                for file in self.path.glob(f"{base_offset:020d}.*"):
                    file.unlink()

    def write(self) -> None:
        for base_offset, batches in self._segments.items():
            written = [write_batch(batch, BatchFields(leader_epoch=0)) for batch in batches]
            for file, content in write_segment(written, base_offset).by_name.items():
                path = self.path / file
                if not path.exists() or path.read_bytes() != content:
                    path.write_bytes(content)

    def _record(self, offset: int) -> Record:
        value = self._random.randbytes(self._random.randint(0, 60))
        return Record(offset, 1_000 + offset, 0, b"key", value)


def grown(log_dir: Path, *records: int, topic: str = "orders", partition: int = 0) -> StreamedLog:
    """A log of so many records in each of its batches."""
    log = StreamedLog(log_dir, topic, partition)
    for count in records:
        log.append(1, count)
    return log


class DrivenStream:
    """A query's life without a JVM: offsets go through JSON, as through a checkpoint."""

    def __init__(self, *paths: Path, start: str | None = None, **options: Any) -> None:
        given = {name: str(value) for name, value in options.items()}
        given["paths"] = json.dumps([str(path) for path in paths])
        self._given = given
        self.read: Read = {}
        self.position = start
        self.restart()

    def restart(self) -> None:
        """A new process that has nothing but the checkpoint."""
        options = stream_options(self._given)
        self.reader = LimitedStreamReader(options, ("topic", "partition", "offset"))
        assert KafkaLogDataSource(self._given).schema() == view_schema(options.read)

    def trigger(self, *, all_there_is: bool = False) -> int:
        """One micro-batch; how many records it had."""
        start = self.position or json.dumps(self.reader.initialOffset())
        limit = ReadAllAvailable() if all_there_is else self.reader.getDefaultReadLimit()
        end = json.dumps(self.reader.latestOffset(json.loads(start), limit))
        count = self.replay(start, end)
        self.position = end
        return count

    def replay(self, start: str, end: str) -> int:
        """Read a micro-batch as the checkpoint has it; how many records it had."""
        count = 0
        for partition in self.reader.partitions(json.loads(start), json.loads(end)):
            for batch in self.reader.read(partition):
                count += batch.num_rows
                for row in batch.to_pylist():
                    self.read.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
        return count

    def to_the_end(self) -> list[int]:
        """Trigger.AvailableNow: the sizes of its micro-batches."""
        self.reader.prepareForTriggerAvailableNow()
        sizes = []
        while True:
            before = self.position
            sizes.append(self.trigger())
            if self.position == before:
                return sizes[:-1]

    @property
    def offsets(self) -> dict[tuple[str, int], int]:
        """The next offset of each partition."""
        topics = json.loads(self.position or "{}")
        return {
            (topic, int(partition)): offset
            for topic, offsets in topics.items()
            for partition, offset in offsets.items()
        }
