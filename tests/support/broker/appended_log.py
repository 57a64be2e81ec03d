"""A partition written batch by batch, as an application of kafkalog appends to it."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.checkpoints import write_offset_checkpoint
from kafkalog.format.transaction_marker import ABORT, TransactionMarker, write_marker
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.wire.compression import CompressionType
from tests.support.broker.written_partitions import varied_records

APPENDED_TOPIC = "kafkalog-appended"
_FIRST, _ABORTED = varied_records(0, 150), varied_records(150, 10)
_LAST = [
    replace(record, timestamp_ms=record.timestamp_ms + 250_000)
    for record in varied_records(161, 150)
]
COMMITTED = (*_FIRST, *_LAST)
_PER_BATCH = 15
_KEPT = "partition.metadata"
_RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class AppendedLog:
    """The directory as the writer left it, and the offset after its last record."""

    directory: Path
    end_offset: int

    @property
    def segments(self) -> list[Path]:
        return sorted(self.directory.glob("*.log"))


def append_log(parent: Path) -> AppendedLog:
    """Write the log: segments end by size and by time, one holds an aborted transaction."""
    directory = parent / f"{APPENDED_TOPIC}-0"
    settings = LogSettings(segment_bytes=450_000, segment_ms=100_000, max_message_bytes=900_000)
    with LogWriter(str(directory), settings, now_ms=lambda: 0) as log:
        for batch in _batches():
            log.append(batch)
    return AppendedLog(directory, log.next_offset)


def _batches() -> list[bytes]:
    sent = BatchFields(producer_id=4712, producer_epoch=0, base_sequence=0, is_transactional=True)
    return [
        *_plain(_FIRST),
        write_batch(_ABORTED, sent),
        _abort_marker(160, _ABORTED[-1].timestamp_ms),
        *_plain(_LAST),
    ]


def _plain(records: list[Record]) -> list[bytes]:
    fields = BatchFields(compression=CompressionType.LZ4)
    starts = range(0, len(records), _PER_BATCH)
    return [write_batch(records[start : start + _PER_BATCH], fields) for start in starts]


def _abort_marker(offset: int, time_ms: int) -> bytes:
    fields = BatchFields(producer_id=4712, producer_epoch=0)
    return write_marker(TransactionMarker(ABORT, 6, time_ms), offset, fields)


def hand_over(written: AppendedLog, log_dir: Path) -> None:
    """Let a stopped broker have the log in place of its own empty one, as flushed to its end: of
    all but the newest segment the broker takes the indexes as they are."""
    directory = log_dir / written.directory.name
    for path in directory.iterdir():
        if path.name != _KEPT:
            path.unlink()
    shutil.copytree(written.directory, directory, dirs_exist_ok=True)
    flushed = {(APPENDED_TOPIC, 0): written.end_offset}
    (log_dir / _RECOVERY_POINTS).write_text(write_offset_checkpoint(flushed))
