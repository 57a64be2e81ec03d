"""A partition that grows at random, what a broker would have on disk, and its state by replay."""

import random
from pathlib import Path
from typing import Any

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, write_marker
from tests.support.jobs.state_runs import State, replayed

_KEYS = (None, b"", *(f"key{number}".encode() for number in range(7)))
_PRODUCERS = (71, 72)


class GrowingLog:
    """Records with few keys, deletes, transactions open and ended, segments, a log start."""

    def __init__(self, topic: str, partition: int, seed: int) -> None:
        self.topic, self.partition = topic, partition
        self._random = random.Random(f"{seed} {topic} {partition}")
        self._segments: dict[int, list[bytes]] = {0: []}
        self.next_offset = 0
        self.log_start = 0
        self.rows: list[dict[str, Any]] = []
        # Of each producer the offsets of its open transaction.
        self._open: dict[int, list[int]] = {}
        self._aborted: set[int] = set()

    def grow(self, changes: int) -> None:
        """Append so many batches or markers, or begin segments, or move the log start."""
        for _ in range(changes):
            change = self._random.choices(
                (self._plain, self._in_transaction, self._end, self._roll, self._trim),
                (8, 4, 3, 1, 1),
            )[0]
            change()

    def _plain(self) -> None:
        self._append(self._records(), BatchFields())

    def _in_transaction(self) -> None:
        producer, records = self._random.choice(_PRODUCERS), self._records()
        self._open.setdefault(producer, []).extend(each.offset for each in records)
        self._append(records, BatchFields(producer_id=producer, producer_epoch=0,
                                          base_sequence=0, is_transactional=True))  # fmt: skip

    def _end(self) -> None:
        if not self._open:
            return
        producer = self._random.choice(sorted(self._open))
        kind = self._random.choice((ABORT, COMMIT))
        offsets = self._open.pop(producer)
        if kind == ABORT:
            self._aborted.update(offsets)
        fields = BatchFields(producer_id=producer, producer_epoch=0)
        marker = write_marker(TransactionMarker(kind, 0, 7), self.next_offset, fields)
        self._write(marker, self.next_offset)

    def _roll(self) -> None:
        self._segments.setdefault(self.next_offset, [])

    def _trim(self) -> None:
        # Not into an open transaction, and not far: most of the log stays.
        self.log_start = max(self.log_start, min(self.last_stable_offset, self.next_offset // 3))

    def _records(self) -> list[Record]:
        count = self._random.randint(1, 4)
        return [self._record(self.next_offset + number) for number in range(count)]

    def _record(self, offset: int) -> Record:
        value = self._random.choice((None, b"", f"value {offset}".encode()))
        # Times that fall and rise: they must not count.
        time_ms = self._random.randint(1000, 2000)
        return Record(offset, time_ms, 0, self._random.choice(_KEYS), value)

    def _append(self, records: list[Record], fields: BatchFields) -> None:
        self.rows += [
            {
                "partition": self.partition,
                "offset": each.offset,
                "key": each.key,
                "value": each.value,
                "timestamp": each.timestamp_ms,
            }
            for each in records
        ]
        self._write(write_batch(records, fields), records[-1].offset)

    def _write(self, batch: bytes, last_offset: int) -> None:
        self._segments[max(self._segments)].append(batch)
        self.next_offset = last_offset + 1

    @property
    def last_stable_offset(self) -> int:
        return min((offsets[0] for offsets in self._open.values()), default=self.next_offset)

    def state(
        self, isolation_level: str, *, end: int | None = None, deletes: bool = False
    ) -> State:
        """The state by the definition, at the end or at an earlier offset."""
        is_committed = isolation_level == "read_committed"
        end = self.last_stable_offset if is_committed else self.next_offset
        gone = self._aborted if is_committed else set()
        rows = [
            row
            for row in self.rows
            if self.log_start <= row["offset"] < end and row["offset"] not in gone
        ]
        return replayed(self.topic, rows, deletes=deletes)

    def write(self, log_dir: Path) -> None:
        """The partition's directory as it is now, in place of what was there."""
        partition = log_dir / f"{self.topic}-{self.partition}"
        partition.mkdir(parents=True, exist_ok=True)
        for base_offset, batches in self._segments.items():
            for file, content in write_segment(batches, base_offset).by_name.items():
                (partition / file).write_bytes(content)
        text = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"
        (partition / "partition.metadata").write_text(text)


def write_logs(log_dir: Path, logs: list[GrowingLog]) -> None:
    """A log directory of them all, with the checkpoint of their log starts."""
    for log in logs:
        log.write(log_dir)
    starts = [f"{log.topic} {log.partition} {log.log_start}\n" for log in logs if log.log_start]
    text = f"0\n{len(starts)}\n{''.join(starts)}"
    (log_dir / "log-start-offset-checkpoint").write_text(text)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=growing\n")
