"""A sound log written again, compacted. Rules: docs/format.md F252, F253."""

from pathlib import Path

from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.storage.cleaning.log_compaction import CompactedLog, compact_log, segment_batches
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from tests.support.logs.compactable_logs import (
    HOUR_MS,
    committed_state,
    compactable_log,
    write_compactable,
)
from tests.support.logs.samples import record
from tests.support.spark.kafka_logs import write_log

NOW_MS = 1_700_000_000_000


def batches_of(directory: Path) -> list[bytes]:
    (log,) = find_partitions([str(directory)])
    return [each.data for each in segment_batches(log.segments)]


def compacted(source: Path, target: Path, end_offset: int) -> CompactedLog:
    (log,) = find_partitions([str(source)])
    with LogWriter(str(target), LogSettings(), now_ms=lambda: NOW_MS) as writer:
        return compact_log(
            log.segments,
            writer,
            start_offset=0,
            end_offset=end_offset,
            now_ms=NOW_MS,
            delete_retention_ms=HOUR_MS,
        )


def test_the_committed_state_is_the_same_and_the_log_ends_where_it_did(tmp_path: Path) -> None:
    # F252.
    for seed in range(8):
        made = compactable_log(seed, NOW_MS)
        source, target = tmp_path / f"source-{seed}", tmp_path / f"target-{seed}"
        write_compactable(source, made.batches, NOW_MS)
        found = compacted(source, target, read_header(made.batches[-1], 0).last_offset + 1)
        before, after = batches_of(source), batches_of(target)
        assert before == made.batches
        assert committed_state(after) == committed_state(before)
        assert read_header(after[-1], 0).last_offset == read_header(before[-1], 0).last_offset
        assert found.source_bytes == sum(map(len, before))
        assert found.cleaned_bytes == sum(map(len, after)) < found.source_bytes


def test_segments_begin_where_they_did_and_none_is_left_empty(tmp_path: Path) -> None:
    # F253: of the first and third segment nothing is left but the last batch of all.
    fields = BatchFields()
    keys = {0: b"a", 3: b"b", 6: b"a", 9: b"a"}
    segments = {
        base: [write_batch([record(base + i, key=key) for i in range(3)], fields)]
        for base, key in keys.items()
    }
    write_log(tmp_path, "orders-0", segments)
    compacted(tmp_path / "orders-0", tmp_path / "compacted-0", 12)
    files = sorted((tmp_path / "compacted-0").glob("*.log"))
    assert [int(path.stem) for path in files] == [0, 9]
    left = [read_header(each, 0) for each in batches_of(tmp_path / "compacted-0")]
    assert [(each.base_offset, each.records_count) for each in left] == [(3, 1), (9, 1)]


def test_nothing_is_compacted_from_the_first_open_transaction_on(tmp_path: Path) -> None:
    # F252; T17.
    made = next(
        log for seed in range(0, 40, 4) if (log := compactable_log(seed, NOW_MS)).open_transactions
    )
    first_open = min(made.open_transactions.values())
    write_compactable(tmp_path / "source-0", made.batches, NOW_MS)
    end = read_header(made.batches[-1], 0).last_offset + 1
    found = compacted(tmp_path / "source-0", tmp_path / "target-0", end)
    assert found.end_offset == first_open
    untouched = [each for each in made.batches if read_header(each, 0).last_offset >= first_open]
    assert batches_of(tmp_path / "target-0")[-len(untouched) :] == untouched
