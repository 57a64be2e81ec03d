"""What retention goes by, taken from files. Rules: F162, F164 and F941."""

import os
from pathlib import Path

import pytest

from kafkalog.format.segment_writer import write_segment
from kafkalog.inspection.partitions.retention_plan import retention_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.topic_configs import read_topic_configs
from tests.support.logs.log_dirs import HIGH_WATERMARKS, add_meta_properties, checkpoint_text
from tests.support.logs.samples import batch

WRITTEN_MS = 1_700_000_000_000


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """orders-0: offsets 0 to 2 and 3 to 5, timestamps 1000 + offset; last written later."""
    add_meta_properties(tmp_path)
    (tmp_path / "orders-0").mkdir()
    for base in (0, 3):
        for name, content in write_segment([batch(base)], base).by_name.items():
            path = tmp_path / "orders-0" / name
            path.write_bytes(content)
            os.utime(path, ns=(0, WRITTEN_MS * 1_000_000))
    return tmp_path


def rows(log_dir: Path, server: str = "log.retention.ms=100") -> list[dict[str, object]]:
    (log,) = find_partitions([str(log_dir)])
    settings = read_topic_configs(None, server).retention("orders")
    return [dict(row) for row in retention_rows(log, settings, 2000)]


def ages(log_dir: Path) -> list[tuple[object, object]]:
    return [(row["largest_timestamp_ms"], row["largest_timestamp_from"]) for row in rows(log_dir)]


def test_the_last_entry_of_the_time_index_counts(log_dir: Path) -> None:
    (log_dir / ".kafka_cleanshutdown").touch()
    assert ages(log_dir) == [(1002, "timeindex"), (1005, "timeindex")]
    assert [(row["goes"], row["reason"]) for row in rows(log_dir)] == [(True, "time")] * 2


@pytest.mark.parametrize("index", [None, b"", bytes(11), b"\xff" * 8 + bytes(4)])
def test_without_an_entry_or_without_its_time_the_files_time_counts(
    log_dir: Path, index: bytes | None
) -> None:
    (log_dir / ".kafka_cleanshutdown").touch()
    path = log_dir / "orders-0" / f"{0:020d}.timeindex"
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    assert ages(log_dir)[0] == (WRITTEN_MS, "mtime")
    # Later than the time of the plan.
    assert rows(log_dir)[0]["reason"] == "future_timestamp"


def with_zeros(log_dir: Path, zeros: int = 120, base: int = 0) -> Path:
    """Zeros after the entries of a segment's time index; a clean stop."""
    path = log_dir / "orders-0" / f"{base:020d}.timeindex"
    path.write_bytes(path.read_bytes() + bytes(zeros))
    (log_dir / ".kafka_cleanshutdown").touch()
    return log_dir


def test_zeros_at_the_end_of_a_time_index_are_an_entry_of_1970(log_dir: Path) -> None:
    # F941. Brokers 4.1.0 and 4.4.0 log of such a segment "largestRecordTimestamp=0", and delete it.
    found = with_zeros(log_dir)
    assert ages(found) == [(0, "timeindex_zeros"), (1005, "timeindex")]
    first, _ = rows(found, "log.retention.ms=1500")
    assert (first["goes"], first["reason"], first["expires_at_ms"]) == (True, "time", 1501)
    with_zeros(log_dir, base=3)
    assert ages(found) == [(0, "timeindex_zeros")] * 2


def test_zeros_that_are_no_whole_entry_are_nothing(log_dir: Path) -> None:
    # F941
    assert ages(with_zeros(log_dir, zeros=11))[0] == (1002, "timeindex")


def test_a_time_index_of_zeros_alone_is_of_1970_too(log_dir: Path) -> None:
    # F941: a single entry can be of a record of 1970
    path = log_dir / "orders-0" / f"{0:020d}.timeindex"
    path.write_bytes(bytes(12))
    (log_dir / ".kafka_cleanshutdown").touch()
    assert ages(log_dir)[0] == (0, "timeindex")


@pytest.mark.parametrize("index", [None, b"", bytes(120)])
def test_indexes_that_a_broker_makes_anew_have_the_batches_times(
    log_dir: Path, index: bytes | None
) -> None:
    # F121, F941: an unclean stop, and nothing was flushed
    path = log_dir / "orders-0" / f"{0:020d}.timeindex"
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    assert ages(log_dir)[0] == (1002, "batches")
    # What was flushed is not recovered.
    checkpoint = checkpoint_text({("orders", 0): 3})
    (log_dir / "recovery-point-offset-checkpoint").write_text(checkpoint)
    assert ages(log_dir)[0] == ((0, "timeindex_zeros") if index else (WRITTEN_MS, "mtime"))


def test_without_an_offset_index_a_broker_makes_both_anew(log_dir: Path) -> None:
    # F121, F941
    with_zeros(log_dir)
    (log_dir / "orders-0" / f"{0:020d}.index").unlink()
    assert ages(log_dir)[0] == (1002, "batches")


def test_half_an_entry_counts_for_nothing(log_dir: Path) -> None:
    path = log_dir / "orders-0" / f"{0:020d}.timeindex"
    path.write_bytes(path.read_bytes() + b"\x7f" * 5)
    assert ages(log_dir)[0] == (1002, "timeindex")


def test_after_an_unclean_stop_the_last_segments_batches_count(log_dir: Path) -> None:
    (log_dir / "orders-0" / f"{3:020d}.timeindex").write_bytes(bytes(1200))
    assert ages(log_dir) == [(1002, "timeindex"), (1005, "batches")]


@pytest.mark.parametrize(
    ("is_clean", "checkpoint", "expected"),
    [
        (True, 3, (3, "checkpoint", [True, False])),
        (True, 99, (6, "checkpoint", [True, True])),
        (True, None, (6, "log_end", [True, True])),
        (False, 0, (6, "log_end", [True, True])),
    ],
)
def test_the_high_watermark_is_the_checkpoints_after_a_clean_stop(
    log_dir: Path, is_clean: bool, checkpoint: int | None, expected: tuple[int, str, list[bool]]
) -> None:
    if is_clean:
        (log_dir / ".kafka_cleanshutdown").touch()
    if checkpoint is not None:
        text = checkpoint_text({("orders", 0): checkpoint})
        (log_dir / HIGH_WATERMARKS).write_text(text)
    found = rows(log_dir)
    assert (
        found[0]["high_watermark"],
        found[0]["high_watermark_from"],
        [row["goes"] for row in found],
    ) == expected
    assert {row["log_end_offset"] for row in found} == {6}


def test_a_partition_without_a_segment_has_no_row(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert rows(tmp_path) == []


def test_zeros_of_an_index_that_a_broker_recreates_are_not_of_1970(log_dir: Path) -> None:
    # F121, F941: copied from a running broker, with room in the index for entries to come.
    last = log_dir / "orders-0" / f"{3:020d}"
    last.with_suffix(".log").write_bytes(b"")
    last.with_suffix(".timeindex").write_bytes(bytes(4092))
    os.utime(last.with_suffix(".log"), ns=(0, WRITTEN_MS * 1_000_000))
    assert ages(log_dir)[-1] == (WRITTEN_MS, "mtime")
    # It is not recreated after a clean stop.
    (log_dir / ".kafka_cleanshutdown").touch()
    assert ages(log_dir)[-1] == (0, "timeindex_zeros")
