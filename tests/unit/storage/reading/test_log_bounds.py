"""Where a log begins and ends. F95 to F97, T31."""

from pathlib import Path

import pytest

from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import LogDir
from kafkalog.storage.reading.log_bounds import EndRule, LogBounds, log_bounds
from tests.support.logs.log_dirs import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    UNIQUE,
    add_partition,
    checkpoint_text,
    log_name,
    log_of,
)

ORDERS = ("orders", 0)


def log_dir(
    *, starts: int | None = None, high_watermark: int | None = None, clean: bool = False
) -> LogDir:
    """A log directory whose checkpoints speak of orders-0, and of others."""
    return LogDir(
        "logs",
        is_clean_shutdown=clean,
        log_starts={("orders", 1): 999} | ({} if starts is None else {ORDERS: starts}),
        high_watermarks={("users", 0): 888}
        | ({} if high_watermark is None else {ORDERS: high_watermark}),
    )


@pytest.mark.parametrize(
    ("checkpoint", "segments", "start"),
    [
        pytest.param(None, (0, 100), 0, id="no checkpoint"),
        pytest.param(None, (70, 100), 70, id="no checkpoint, old segments gone"),
        pytest.param(30, (0, 100), 30, id="inside the first segment"),
        pytest.param(130, (0, 100), 130, id="inside the second segment"),
        pytest.param(70, (70, 100), 70, id="at the first segment"),
        pytest.param(30, (70, 100), 70, id="before the first: the rest is in tiered storage"),
        pytest.param(30, (), 30, id="no segment"),
        pytest.param(None, (), 0, id="no segment and no checkpoint"),
    ],
)
@pytest.mark.parametrize("rule", EndRule)
def test_a_log_starts_at_its_checkpoint_or_its_first_segment_whichever_is_later(
    checkpoint: int | None, segments: tuple[int, ...], start: int, rule: EndRule
) -> None:
    # F95, T31.
    log = log_of("orders", 0, *segments, log_dir=log_dir(starts=checkpoint))
    # F96: a log without a segment ends where it starts.
    assert log_bounds(log, rule) == LogBounds(start, None if segments else start)


@pytest.mark.parametrize("clean", [True, False])
def test_the_end_of_the_sound_bytes_is_for_their_reader_to_find(clean: bool) -> None:
    # F96.
    log = log_of("orders", 0, 0, log_dir=log_dir(high_watermark=50, clean=clean))
    assert log_bounds(log, EndRule.LOG_END) == LogBounds(0, None)


@pytest.mark.parametrize(
    ("high_watermark", "clean", "end"),
    [
        pytest.param(50, True, 50, id="clean"),
        pytest.param(0, True, 0, id="clean, nothing replicated"),
        pytest.param(50, False, None, id="unclean: the checkpoint may be stale"),
        pytest.param(0, False, None, id="unclean: 0 while everything was served"),
        pytest.param(None, True, None, id="clean, no checkpoint"),
        pytest.param(None, False, None, id="unclean, no checkpoint"),
    ],
)
def test_the_high_watermark_counts_after_a_clean_shutdown_only(
    high_watermark: int | None, clean: bool, end: int | None
) -> None:
    # F83, F97.
    log = log_of("orders", 0, 0, log_dir=log_dir(high_watermark=high_watermark, clean=clean))
    assert log_bounds(log, EndRule.HIGH_WATERMARK) == LogBounds(0, end)


@pytest.mark.parametrize("rule", EndRule)
def test_a_log_of_no_topic_has_no_checkpoint(rule: EndRule) -> None:
    log = log_of(None, None, 70, log_dir=log_dir(starts=90, high_watermark=95, clean=True))
    assert log_bounds(log, rule) == LogBounds(70, None)


def test_a_file_that_tells_no_offset_is_read_from_the_first(tmp_path: Path) -> None:
    (tmp_path / "segment.bin").touch()
    (log,) = find_partitions([str(tmp_path / "segment.bin")])
    assert log_bounds(log, EndRule.LOG_END) == LogBounds(0, None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory in which orders-0 starts at 90, at 70 a segment that a broker deleted."""
    live = add_partition(tmp_path, "orders-0", 80)
    (live / log_name(70, ".deleted")).touch()
    add_partition(tmp_path, f"orders-0.{UNIQUE}-delete", 70)
    (tmp_path / LOG_STARTS).write_text(checkpoint_text({ORDERS: 90}))
    (tmp_path / HIGH_WATERMARKS).write_text(checkpoint_text({ORDERS: 95}))
    (tmp_path / ".kafka_cleanshutdown").touch()
    return tmp_path


@pytest.mark.parametrize("path", ["", "orders-0", f"orders-0/{log_name(80)}"])
def test_the_log_start_holds_for_live_segments_however_they_are_given(
    path: str, data: Path
) -> None:
    # F95.
    (log,) = find_partitions([str(data / path)])
    assert log_bounds(log, EndRule.LOG_END) == LogBounds(90, None)


@pytest.mark.parametrize("path", [f"orders-0.{UNIQUE}-delete", f"orders-0/{log_name(70)}.deleted"])
def test_the_log_start_does_not_hold_for_what_was_deleted(path: str, data: Path) -> None:
    # F92, F95.
    (log,) = find_partitions([str(data / path)])
    assert log_bounds(log, EndRule.LOG_END) == LogBounds(70, None)


def test_the_high_watermark_does_not_hold_for_a_directory_of_the_same_name(data: Path) -> None:
    # F92, F97.
    (log,) = find_partitions([str(data / f"orders-0.{UNIQUE}-delete")])
    assert log_bounds(log, EndRule.HIGH_WATERMARK).end_offset is None
