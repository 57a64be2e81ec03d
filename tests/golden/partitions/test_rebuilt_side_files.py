"""Side files rebuilt from real brokers' logs mean what theirs do. F115, F138; T28, T29.

Entry sets differ where an index grew with the log; so ours are checked against the log, and the
broker's own entries looked up by ours and the other way round.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.indexes import read_time_index, read_transaction_index
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.side_files import SideFiles, rebuild_side_files
from tests.support.golden.fixture_sets import Segment, unique_segments
from tests.support.logs.checked_indexes import checked
from tests.support.repository import Unpack

SETS = ("kafka08", "kafka010", "kafka39zk", "kafka44")


def rebuilt(logs: Path) -> Iterator[tuple[Segment, SideFiles]]:
    """All segments, the producers handed on from one to the next."""
    directory, producers = None, ProducerState()
    for segment in unique_segments(logs):
        if segment.path.parent != directory:
            directory, producers = segment.path.parent, ProducerState()
        with InputFile(str(segment.path)) as file:
            yield segment, rebuild_side_files(file, segment.base_offset, producers)


@pytest.mark.parametrize("name", SETS)
def test_rebuilt_indexes_are_sound_and_have_the_times_of_the_brokers(
    name: str, unpacked: Unpack
) -> None:
    # F101, F115, F133, F138; T29.
    compared = 0
    for segment, files in rebuilt(unpacked(f"{name}.logs")):
        log = segment.path.read_bytes()
        assert (files.valid_bytes, files.stop) == (len(log), None)
        found = checked(
            log,
            segment.base_offset,
            index=files.index,
            timeindex=files.timeindex,
            txnindex=files.txnindex,
            is_active=False,
        )
        # Large batches leave no place for an entry.
        assert [finding for finding in found if finding.kind != "empty"] == [], segment
        theirs = segment.path.with_suffix(".timeindex")
        if theirs.exists() and segment.next_base_offset is not None:
            compared += same_times(segment.base_offset, files.timeindex, theirs.read_bytes())
    assert compared > 0 or name == "kafka08"


def same_times(base_offset: int, ours: bytes, theirs: bytes) -> int:
    """The last entries are equal, and what both have of one offset: the number of entries."""
    mine, kept = (read_time_index(data, base_offset).entries for data in (ours, theirs))
    if not mine:
        return 0  # format 0: the broker's index has times that the log has not
    by_offset = {entry.offset: entry for entry in mine}
    assert all(by_offset.get(entry.offset, entry) == entry for entry in kept)
    times = [entry.timestamp_ms for entry in mine]
    for entry in kept:
        # The latest of ours that is not later begins no farther on in the log.
        index = bisect_right(times, entry.timestamp_ms)
        assert index == 0 or mine[index - 1].offset <= entry.offset
    return len(kept)


def is_never_cleaned(segment: Segment) -> bool:
    log_dir = segment.path.parent.parent
    text = (log_dir / "cleaner-offset-checkpoint").read_text()
    return (segment.topic, segment.partition) not in read_offset_checkpoint(text)


@pytest.mark.parametrize("name", ["kafka39zk", "kafka44"])
def test_rebuilt_transaction_indexes_are_the_brokers(name: str, unpacked: Unpack) -> None:
    # F104, F112, F138.
    compared = 0
    for segment, files in rebuilt(unpacked(f"{name}.logs")):
        if not is_never_cleaned(segment):
            continue
        path = segment.path.with_suffix(".txnindex")
        theirs = path.read_bytes() if path.exists() else b""
        first = read_transaction_index(theirs)[:1]
        began_before = first and first[0].first_offset < segment.base_offset
        if files.txnindex is None and began_before:
            continue  # the segment it began in is deleted
        assert (files.txnindex or b"") == theirs, segment
        compared += len(theirs)
    assert compared > 0


def test_rebuilt_snapshots_are_byte_by_byte_those_of_a_broker(unpacked: Unpack) -> None:
    # F105, F106, F138: of partitions with one producer the order of entries is certain.
    compared = 0
    for segment, files in rebuilt(unpacked("kafka44.logs")):
        theirs = segment.path.parent / f"{files.end_offset:020d}.snapshot"
        if segment.topic == "shop.tx" or not theirs.exists():
            continue
        if theirs.stat().st_size == len(files.snapshot) == 56:
            assert files.by_name[theirs.name] == theirs.read_bytes(), theirs
            compared += 1
    assert compared > 0
