"""Logs that real cleaners have cleaned. Rules: F240 to F260."""

from typing import Any

import pytest

from kafkalog.format.batch_header import read_header
from kafkalog.inspection.partitions.compaction_report import compaction_rows
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.log_compaction import segment_batches
from kafkalog.storage.cleaning.log_transactions import log_transactions
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.topic_configs import TopicConfigs
from kafkalog.storage.partition_log import PartitionLog
from tests.support.golden.fixture_sets import consumed
from tests.support.logs.compactable_logs import committed_state
from tests.support.repository import Unpack

# Behind all delete horizons.
_FAR_MS = 2**62
_SETS = ("kafka44", "kafka39zk", "kafka010")


def cleaned_logs(unpacked: Unpack, name: str) -> list[PartitionLog]:
    """The partitions that the cleaner's checkpoint names."""
    places = {path.parent for path in unpacked(f"{name}.logs").rglob("cleaner-offset-checkpoint")}
    return [
        log
        for place in sorted(places)
        for log in find_partitions([str(place)])
        if log.topic_partition in log.log_dir.cleaner_checkpoints and log.is_live
    ]


def report(log: PartitionLog, before: PartitionLog | None = None) -> dict[str, Any]:
    settings = TopicConfigs().compaction(log.topic)
    (row,) = compaction_rows(log, settings, _FAR_MS, before)
    return dict(row)


@pytest.mark.parametrize("name", _SETS)
def test_what_real_cleaners_left_breaks_no_promise(name: str, unpacked: Unpack) -> None:
    # F255 to F258; T42: tombstones past their horizon and duplicates above the checkpoint.
    logs = cleaned_logs(unpacked, name)
    rows = {log.name: report(log) for log in logs}
    assert rows
    faults = {
        name: row["findings"] for name, row in rows.items() if row["errors"] or row["warnings"]
    }
    assert faults == {}
    assert all(row["unread_bytes"] == 0 for row in rows.values())


def test_the_counts_are_those_of_what_a_consumer_received(unpacked: Unpack) -> None:
    # F255, F258: the cleaner removed aborted records, so this consumer tells all.
    (place,) = unpacked("kafka44.golden").rglob("consumer")
    for log in cleaned_logs(unpacked, "kafka44"):
        row = report(log)
        end = row["cleaner_checkpoint"]
        received = consumed(place.parent, log.topic or "", "read_uncommitted")
        below = [each for each in received if each["offset"] < end]
        assert row["cleaned_records"] == len(below)
        assert row["cleaned_keys"] == len({each["key"] for each in below})
        assert row["expired_tombstones"] == sum(each["value"] is None for each in below)
        # Between the checkpoint and the active segment is nothing, above it nothing was cleaned.
        assert (row["first_dirty_offset"], row["dirty_bytes"], row["is_due"]) == (end, 0, False)


@pytest.mark.parametrize("name", _SETS)
def test_cleaning_again_changes_nothing_that_a_reader_sees(name: str, unpacked: Unpack) -> None:
    # F242 to F251: whole logs from their start, every horizon before or behind the clock.
    for log in cleaned_logs(unpacked, name):
        batches = [each.data for each in segment_batches(log.segments)]
        transactions = log_transactions(batches)
        opened = transactions.first_open_offset
        end = read_header(batches[-1], 0).last_offset + 1
        for now_ms in (0, _FAR_MS):
            cleaning = CleaningRound(
                first_dirty_offset=0,
                first_uncleanable_offset=end if opened is None else opened,
                high_watermark=end,
                now_ms=now_ms,
                delete_retention_ms=1,
                producers=transactions.producers,
                aborted=transactions.aborted,
            )
            sources = [SourceBatch(each, 1) for each in batches]
            last = last_offsets(sources, cleaning)
            found = [each.cleaned for each in cleaned_batches(sources, last, cleaning)]
            left = [each for each in found if each is not None]
            assert committed_state(left) == committed_state(batches), log.name
            assert read_header(left[-1], 0).last_offset == end - 1
