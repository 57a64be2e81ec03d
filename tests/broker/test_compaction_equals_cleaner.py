"""What a 4.4.0 broker's cleaner makes of logs, and what kafkalog's compaction makes of them."""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint, write_offset_checkpoint
from kafkalog.inspection.partitions.compaction_report import compaction_rows
from kafkalog.storage.cleaning.cleanable import (
    CleanableLog,
    CleanablePart,
    CleanableSegment,
    cleanable_part,
)
from kafkalog.storage.cleaning.compaction import (
    CleanedBatch,
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.log_transactions import log_transactions
from kafkalog.storage.files.files import modified_ms
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.topic_configs import TopicConfigs
from kafkalog.storage.recovery.framing import LATEST_FORMAT
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import TOPIC, Cluster, prepared_cluster
from tests.support.logs.compactable_logs import HOUR_MS, compactable_log, write_compactable

pytestmark = pytest.mark.deep

_LOGS = 40
_CLEANED = "cleaner-offset-checkpoint"
_HIGH_WATERMARKS = "replication-offset-checkpoint"
_CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": f"{HOUR_MS}",
}
_TIMEOUT_SECONDS = 60
_BEYOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A partition before and after its cleaning."""

    number: int
    before: list[SourceBatch]
    after: list[bytes]
    part: CleanablePart
    legacy_delete_horizon_ms: int


@dataclass(frozen=True, slots=True)
class CleanerRun:
    """All logs that were cleaned, and their log directory before and after."""

    logs: list[Cleaned]
    before: Path
    after: Path


def _sources(directory: Path) -> list[SourceBatch]:
    found: list[SourceBatch] = []
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        while position < len(data):
            size = read_header(data, position).size
            batch = data[position : position + size]
            found.append(SourceBatch(batch, modified_ms(str(path))))
            position += size
    return found


def _checkpoint(directory: Path, number: int) -> int | None:
    """In every other log an earlier round has come to its third segment; of some the checkpoint
    is above the log's end and does not count."""
    if number % 2 == 0:
        return _BEYOND if number % 8 == 0 else None
    return sorted(int(path.stem) for path in directory.glob("*.log"))[2]


def _legacy_horizon(directory: Path, first_dirty_offset: int) -> int:
    clean = [path for path in directory.glob("*.log") if int(path.stem) < first_dirty_offset]
    if not clean:
        return 0
    return modified_ms(str(max(clean))) - HOUR_MS


def _filled(cluster: Cluster, scratch: Path, now_ms: int) -> None:
    cleaned: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    for number in range(_LOGS):
        source = scratch / f"made-{number}"
        batches = compactable_log(number, now_ms).batches
        ends[TOPIC, number] = read_header(batches[-1], 0).last_offset + 1
        write_compactable(source, batches, now_ms, ends_rolled=number % 5 == 0)
        cluster.fill(number, source)
        directory = cluster.directory(number)
        for index, path in enumerate(sorted(directory.glob("*.log"))):
            written_s = now_ms // 1000 - index % 3 * 5 * 3600
            os.utime(path, (written_s, written_s))
        checkpoint = _checkpoint(directory, number)
        if checkpoint is not None:
            cleaned[TOPIC, number] = checkpoint
    (cluster.log_dir / _CLEANED).write_text(write_offset_checkpoint(cleaned))
    (cluster.log_dir / _HIGH_WATERMARKS).write_text(write_offset_checkpoint(ends))


def _part(directory: Path, number: int, batches: Sequence[SourceBatch]) -> CleanablePart:
    """What the cleaner would clean; the high watermark is the log's end."""
    segments = [
        CleanableSegment(int(path.stem), path.stat().st_size, 0)
        for path in sorted(directory.glob("*.log"))
    ]
    end = read_header(batches[-1].data, 0).last_offset + 1
    opened = log_transactions(each.data for each in batches).first_open_offset
    checkpoint = _checkpoint(directory, number)
    log = CleanableLog(segments, checkpoint, 0, end, end if opened is None else opened)
    return cleanable_part(log, now_ms=0, min_compaction_lag_ms=0)


def _cleaned_offsets(log_dir: Path) -> dict[int, int]:
    offsets = read_offset_checkpoint((log_dir / _CLEANED).read_text())
    return {partition: offset for (topic, partition), offset in offsets.items() if topic == TOPIC}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> CleanerRun:
    scratch = tmp_path_factory.mktemp("cleaned")
    cluster = prepared_cluster(scratch / "kafka", _LOGS, _CONFIGS)
    _filled(cluster, scratch, time.time_ns() // 1_000_000)
    found: list[Cleaned] = []
    for number in range(_LOGS):
        directory = cluster.directory(number)
        before = _sources(directory)
        part = _part(directory, number, before)
        horizon = _legacy_horizon(directory, part.first_dirty_offset)
        found.append(Cleaned(number, before, [], part, horizon))
    # Waiting for these offsets shows that they are the broker's own.
    due = {
        each.number: each.part.first_uncleanable_offset for each in found if each.part.dirty_bytes
    }
    copies = shutil.copytree(cluster.log_dir, scratch / "before")
    with KafkaServer(cluster.work_dir) as server:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not due.items() <= _cleaned_offsets(server.log_dir).items():
            assert time.monotonic() < deadline, (due, _cleaned_offsets(server.log_dir))
            time.sleep(0.2)
    logs = [
        replace(each, after=[part.data for part in _sources(cluster.directory(each.number))])
        for each in found
        if each.number in due
    ]
    return CleanerRun(logs, copies, cluster.log_dir)


@pytest.fixture(scope="module")
def cleaned(run: CleanerRun) -> list[Cleaned]:
    return run.logs


def _now_ms(log: Cleaned) -> int:
    """The cleaner's own clock, from a horizon that it has set."""
    known = {read_header(each.data, 0).delete_horizon_ms for each in log.before}
    fresh = {read_header(each, 0).delete_horizon_ms for each in log.after} - known - {None}
    assert len(fresh) <= 1
    return next((each - HOUR_MS for each in fresh if each), time.time_ns() // 1_000_000)


def _compacted(log: Cleaned) -> list[CleanedBatch]:
    transactions = log_transactions(each.data for each in log.before)
    cleaning = CleaningRound(
        first_dirty_offset=log.part.first_dirty_offset,
        first_uncleanable_offset=log.part.first_uncleanable_offset,
        high_watermark=read_header(log.before[-1].data, 0).last_offset + 1,
        now_ms=_now_ms(log),
        delete_retention_ms=HOUR_MS,
        producers=transactions.producers,
        aborted=transactions.aborted,
        legacy_delete_horizon_ms=log.legacy_delete_horizon_ms,
    )
    last = last_offsets(log.before, cleaning)
    return list(cleaned_batches(log.before, last, cleaning))


def _content(batch: bytes) -> tuple[BatchHeader, list[Record]]:
    """Header and records; how large a compressed payload is, is the compressor's choice."""
    header = read_header(batch, 0)
    if header.compression_id:
        header = replace(header, length=0, crc=0)
    return header, read_batch(batch, 0)


def test_compaction_leaves_what_the_cleaner_leaves(cleaned: list[Cleaned]) -> None:
    # F240 to F251.
    for log in cleaned:
        expected = [_content(batch) for batch in log.after]
        left = [each.cleaned for each in _compacted(log) if each.cleaned is not None]
        assert [_content(batch) for batch in left] == expected, log.number


def test_batches_that_the_cleaner_leaves_alone_are_the_same_bytes(cleaned: list[Cleaned]) -> None:
    # F246.
    for log in cleaned:
        untouched = [each.cleaned for each in _compacted(log) if each.cleaned == each.source]
        assert untouched and set(untouched) <= set(log.after), log.number


def test_the_logs_hold_all_that_a_cleaner_meets(cleaned: list[Cleaned]) -> None:
    met = {_met(each) for log in cleaned for each in _compacted(log)}
    assert met == {
        (kind, change)
        for kind in ("records", "transactional records", "marker")
        for change in ("same", "gone", "emptied", "rewritten")
    } | {("old format", "gone"), ("old format", "rewritten")}


def _met(part: CleanedBatch) -> tuple[str, str]:
    header = read_header(part.source, 0)
    kind = "transactional records" if header.is_transactional else "records"
    if header.is_control:
        kind = "marker"
    elif header.magic < LATEST_FORMAT:
        kind = "old format"
    if part.cleaned is None or part.cleaned == part.source:
        return kind, "gone" if part.cleaned is None else "same"
    is_emptied = header.records_count and not read_header(part.cleaned, 0).records_count
    return kind, "emptied" if is_emptied else "rewritten"


def test_the_report_finds_no_fault_in_what_the_cleaner_left_and_lost(run: CleanerRun) -> None:
    # F255 to F260: logs of which the cleaner has seen the whole, compared with the copy before.
    before = {log.name: log for log in find_partitions([str(run.before)])}
    due = {f"{TOPIC}-{log.number}": log for log in run.logs if not log.part.first_dirty_offset}
    assert due
    settings = TopicConfigs({TOPIC: _CONFIGS}, {}).compaction(TOPIC)
    for log in find_partitions([str(run.after)]):
        if log.name in due:
            (row,) = compaction_rows(log, settings, time.time_ns() // 1_000_000, before[log.name])
            assert row["findings"] == [], log.name
            end = due[log.name].part.first_uncleanable_offset
            assert (row["cleaner_checkpoint"], row["first_dirty_offset"]) == (end, end)
            assert (row["dirty_bytes"], row["freeable_bytes"]) == (0, 0)


def test_the_report_tells_beforehand_what_the_cleaner_will_free(run: CleanerRun) -> None:
    # F240 to F251.
    before = {log.name: log for log in find_partitions([str(run.before)])}
    settings = TopicConfigs({TOPIC: _CONFIGS}, {}).compaction(TOPIC)
    for log in run.logs:
        source = before[f"{TOPIC}-{log.number}"]
        (row,) = compaction_rows(source, settings, _now_ms(log), None)
        freed = sum(map(len, (each.data for each in log.before))) - sum(map(len, log.after))
        assert row["is_due"]
        # Compressors of the two sides differ by a few bytes in a batch.
        assert abs(int(str(row["freeable_bytes"])) - freed) <= 8 * len(log.after)
        assert row["is_checkpoint_reset"] == (log.number % 8 == 0)
