"""From the rows of views to those of a report. Rules: docs/report.md F600, F602, F637, F645."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from kafkalog.questions.checks import checks
from kafkalog.report.contents import (
    TRACKED_KEYS,
    BatchesSection,
    KeysSection,
    ReportMoment,
    Row,
    as_rows,
)
from kafkalog.report.reading import batch_reading
from kafkalog.report.reading.batch_reading import (
    BatchSums,
    TimeSpread,
    asked_sums,
    asked_times,
    batches_section,
)
from kafkalog.report.reading.damage_reading import damage_section
from kafkalog.report.reading.key_reading import asked_keys, keys_section
from kafkalog.report.reading.key_sketch import KeySketch, sketch_of
from kafkalog.report.reading.retention_reading import read_retention
from kafkalog.report.reading.storage_reading import asked_segments, longest_copies, storage_section
from kafkalog.report.reading.transaction_reading import read_transactions
from tests.support.made_views import MadeViews

AT_MS = 1_700_000_000_000


def segments_of(views: MadeViews) -> list[Row]:
    (rows,) = views.rows(asked_segments())
    return as_rows(rows)


def read_batches(views: MadeViews, longest: frozenset[str], **until: int) -> BatchesSection:
    (times,) = views.rows(asked_times(**until))
    spread = TimeSpread(times)
    (sums,) = views.rows(asked_sums(BatchSums(longest, ["a"], spread.grid, **until)))
    return batches_section(spread, sums)


def read_keys(views: MadeViews, *, are_shown: bool) -> KeysSection:
    (counted,) = views.rows(asked_keys(["orders"], are_shown=are_shown))
    return keys_section(counted, are_shown=are_shown)


def test_segments_count_that_a_broker_serves_and_others_are_told_apart() -> None:
    row = {"topic": "a", "partition": 0, "directory": "/a-0", "size": 100}
    served = [{**row, "status": status} for status in ("live", "takes_over", "active")]
    others = [{**row, "status": status, "size": 7} for status in ("dropped", "replaced")]
    views = MadeViews(segments=[served, [*others, {**row, "status": "dropped", "size": None}]])
    section = storage_section(segments_of(views), 12)
    (topic,) = section.topics
    assert (topic.partitions, topic.copies, topic.segments, topic.bytes) == (1, 1, 3, 300)
    assert (section.unserved.segments, section.unserved.bytes) == (2, 14)


def test_the_longest_copy_reaches_furthest_and_of_such_has_most_bytes() -> None:
    def segment(directory: str, status: str, last: int | None, size: int | None) -> dict[str, Any]:
        topic, partition = directory.rpartition("/")[2].split("-")
        key = {"topic": topic, "partition": int(partition), "directory": directory}
        return {**key, "status": status, "last_offset": last, "size": size}

    rows = [
        *(segment("/1/a-0", "live", 9, 10), segment("/1/a-0", "active", 12, 9)),
        *(segment("/2/a-0", "active", 12, 10), segment("/2/a-0", "deleted", 3, 90)),
        *(segment("/3/a-0", "active", None, None), segment("/1/b-0", "active", 5, 5)),
    ]
    assert longest_copies(segments_of(MadeViews(segments=[rows]))) == {"/1/a-0", "/1/b-0"}


def test_of_a_past_time_no_stretch_has_later_batches() -> None:
    # F942
    def batch(minutes: int) -> dict[str, Any]:
        named = {"topic": "a", "file": "/1/a-0/0.log", "compression": "none", "is_control": False}
        return {**named, "size": 100, "records": 1, "max_timestamp_ms": AT_MS + minutes * 60_000}

    views = MadeViews(batches=[[batch(0), batch(1), batch(2), batch(90)]])
    found = read_batches(views, frozenset(("/1/a-0",)), until_ms=AT_MS + 60_000)
    assert found.grid is not None
    last = found.grid.begin_ms + (found.grid.stretches - 1) * found.grid.every_ms
    assert last <= AT_MS + 60_000
    by_stretch = {row.stretch: row.batches for row in found.by_time}
    assert by_stretch.pop(found.grid.stretches + 1) == 2
    assert sum(by_stretch.values()) == 2
    assert vars(found.later) == {"batches": 2, "records": 2, "bytes": 200}


@pytest.mark.parametrize("waiting", [1, 2, 16_384])
def test_batches_are_summed_by_time_and_size_and_none_is_lost(
    waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reading, "_MOST_WAITING", waiting)
    hour = 3_600_000

    def batch(topic: str, size: int, hours: float | None, **more: Any) -> dict[str, Any]:
        time_ms = None if hours is None else AT_MS + int(hours * hour)
        named = {"topic": topic, "file": f"/1/{topic}-0/0.log", "compression": "zstd", "records": 2}
        return {**named, "size": size, "max_timestamp_ms": time_ms, "is_control": False, **more}

    rows = [
        *(batch("a", 1024, 0, uncompressed_size=4096), batch("a", 2047, 0.001)),
        *(batch("b", 61, 1), batch("a", 100, None), batch("a", 100, 1, file="/2/a-0/0.log")),
        batch("a", 78, 0, is_control=True),
    ]
    views = MadeViews(batches=[rows[:3], rows[3:]])
    found = read_batches(views, frozenset(("/1/a-0", "/1/b-0")))
    assert found.grid is not None
    by_time = {(row.shown_topic, row.stretch): row for row in found.by_time}
    last = (AT_MS + hour - found.grid.begin_ms) // found.grid.every_ms
    first = (AT_MS - found.grid.begin_ms) // found.grid.every_ms
    assert found.grid.begin_ms <= AT_MS and last < found.grid.stretches
    # F637: of the partition that has two replicas, records are counted once.
    assert {key: (row.batches, row.bytes, row.records) for key, row in by_time.items()} == {
        ("a", -1): (1, 100, 2),
        ("a", first): (2, 3071, 4),
        ("a", last): (1, 100, 0),
        (None, last): (1, 61, 2),
    }
    by_size = {row.size_from: row for row in found.by_size}
    assert {size: row.batches for size, row in by_size.items()} == {32: 1, 64: 2, 1024: 2}
    assert (by_size[1024].measured_bytes, by_size[1024].uncompressed_bytes) == (1024, 4096)
    assert [(row.shown_topic, row.batches) for row in found.control] == [("a", 1)]


def test_keys_are_counted_by_topic_and_shown_only_when_asked() -> None:
    def record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, Any]:
        return {"topic": topic, "key": key, "value": value}

    rows = [record("orders", b"hot", b"v")] * 7 + [record("orders", b"\xff", None)] * 2
    rows += [record("orders", None, b"v"), record("users", b"a" * 300, None)]
    rows += [record("users", b"b", b"")]
    views = MadeViews(records=[rows[:5], rows[5:]])
    orders, others = read_keys(views, are_shown=True).topics
    assert [(each.item, each.count) for each in orders.top_keys] == [("hot", 7), ("0xFF", 2)]
    assert (orders.records, orders.keyed, orders.tombstones, orders.distinct_keys) == (10, 9, 2, 2)
    assert (others.shown_topic, others.keyed, others.tombstones) == (None, 2, 1)
    assert {len(each.item) for each in others.top_keys} == {1, 48 + len("… ") + 16}
    hidden, again = (read_keys(views, are_shown=False).topics[0] for _ in range(2))
    assert [each.count for each in hidden.top_keys] == [7, 2]
    items = [each.item for each in (*hidden.top_keys, *again.top_keys)]
    assert len(set(items)) == 4 and all(len(item) == 8 for item in items)


@pytest.mark.parametrize("keys", [100, 100_000])
def test_sketches_of_parts_have_the_frequent_keys_and_about_the_number_of_keys(keys: int) -> None:
    draw = np.random.default_rng(602)
    hashes = draw.integers(0, 2**64, keys, np.uint64)
    drawn = np.concatenate((hashes, np.repeat(hashes[:3], (30_000, 20_000, 10_000))))
    draw.shuffle(drawn)
    whole = KeySketch()
    for part in np.array_split(drawn, 7):
        whole.merge(sketch_of(part))
    true = Counter(drawn.tolist())
    assert whole.distinct == pytest.approx(keys, rel=0 if keys == 100 else 0.05)
    for (found, count, _), (key, exact) in zip(
        whole.most_frequent(3), true.most_common(3), strict=True
    ):
        assert found == key
        assert exact - (0 if keys == 100 else len(drawn) / TRACKED_KEYS) <= count <= exact


def byte_range(base: int, position: int, length: int, **changes: object) -> dict[str, Any]:
    log = {"broker_id": 1, "input_path": "/logs", "topic": "a", "partition": 0}
    file = {"file": f"/a-0/{base}.log", "segment_base_offset": base, "file_size": 500}
    place = {"position": position, "length": length, "verdict": "valid", "batches": 0}
    return {**log, **file, **place, "records": 0, **changes}


def test_a_range_marks_every_cell_of_its_partition_that_it_touches() -> None:
    fault = {"verdict": "faulty", "kind": "checksum", "severity": "error", "detail": "d"}
    rows = [
        *(byte_range(0, 0, 500), byte_range(7, 0, 99), byte_range(7, 99, 2, **fault)),
        byte_range(7, 101, 398),
        byte_range(7, 499, 1, verdict="trailing", kind="truncated", severity="information"),
        byte_range(
            7, 500, 0, kind="segment_hole", severity="warning", base_offset=9, last_offset=9
        ),
        byte_range(0, 0, 500, topic="sound"),
    ]
    # The tasks' order is any; a segment is of one task.
    views = MadeViews(byte_ranges=[rows[1:6], rows[6:] + rows[:1]])
    found = damage_section(checks(views, with_indexes=False), cells=10, partitions=1, ranges=2)
    (log,) = found.logs
    assert (log.topic, log.bytes, log.segments, log.ranges, log.errors) == ("a", 1000, 2, 3, 1)
    assert (log.faulty_bytes, log.trailing_bytes) == (2, 1)
    assert [(mark.cell, mark.kind) for mark in log.marks] == [
        *((5, "checksum"), (6, "checksum")),
        *((9, "segment_hole"), (9, "trailing")),
    ]
    first, second = found.ranges
    assert (first.kind, first.position, first.length) == ("checksum", 99, 2)
    assert second.kind == "segment_hole"
    assert found.totals.missing == "NOT COMPLETE: 1 offset of a-0 is in no segment"
    assert (found.totals.partitions, found.totals.damaged_partitions) == (2, 1)


def test_what_goes_when_follows_from_the_time_of_the_plan() -> None:
    day = 86_400_000

    def segment(topic: str, goes: bool | None, in_ms: int | None, **more: Any) -> dict[str, Any]:
        expires_ms = None if in_ms is None else AT_MS + in_ms
        row = {"topic": topic, "bytes": 10, "at_ms": AT_MS, "retention_ms": day}
        return {**row, "goes": goes, "expires_at_ms": expires_ms, **more}

    future = {"reason": "future_timestamp", "largest_timestamp_ms": AT_MS + 9 * day}
    rows = [
        *(segment("a", True, -1), segment("a", False, day), segment("a", False, day + 1)),
        *(segment("a", False, 31 * day, **future), segment("b", False, None)),
        segment("b", None, None, retention_ms=None),
    ]
    found = read_retention(
        MadeViews(retention_plan=[rows]), ["a"], None, at_ms=AT_MS, config={}, most=12
    )
    assert [(row.shown_topic, row.when, row.segments) for row in found.times] == [
        *((None, "stays", 1), (None, "unknown", 1), ("a", "day", 1), ("a", "later", 1)),
        *(("a", "now", 1), ("a", "week", 1)),
    ]
    (blocked,) = found.blocked
    assert (blocked.topic, blocked.timestamp_ms) == ("a", AT_MS + 9 * day)


def test_partly_known_limits_say_when_and_what_is_missing() -> None:
    # F168, F941
    hour = 3_600_000
    own = {"cleanup_policy_from": "unknown", "retention_bytes_from": "unknown"}
    row = {"topic": "a", "bytes": 10, "at_ms": AT_MS, "goes": None, **own, "retention_ms": hour}
    rows = [
        {**row, "expires_at_ms": AT_MS - 1, "largest_timestamp_from": "timeindex_zeros"},
        {**row, "expires_at_ms": AT_MS + hour},
        {**row, "expires_at_ms": None, "retention_ms_from": "unknown", "retention_ms": None},
    ]
    found = read_retention(
        MadeViews(retention_plan=[rows]), ["a"], None, at_ms=AT_MS, config={}, most=12
    )
    assert [(row.when, row.missing) for row in found.times] == [
        ("day", ["cleanup.policy", "retention.bytes"]),
        ("now", ["cleanup.policy", "retention.bytes"]),
        ("unknown", ["cleanup.policy", "retention.bytes", "retention.ms"]),
    ]
    (padded,) = found.padded
    assert (padded.topic, padded.segments) == ("a", 1)


def test_open_transactions_are_judged_and_others_counted() -> None:
    log = {"input_path": "/logs", "topic": "a", "partition": 0}
    long_ago = AT_MS - 3_600_000
    rows = [
        *[{**log, "producer_id": 1, "outcome": "committed"}] * 3,
        {**log, "producer_id": 2, "outcome": "aborted"},
        {**log, "producer_id": 9, "outcome": "open", "last_timestamp_ms": long_ago},
    ]
    held = {"offsets_held_back": 5, "last_stable_offset": 7, "holder_producer_id": 9}
    views = MadeViews(transactions=[rows[:2], rows[2:]], stable_offsets=[[{**log, **held}]])
    found = read_transactions(views, [], ReportMoment(AT_MS, is_now=True), most=20)
    assert [(row.outcome, row.transactions) for row in found.outcomes] == [
        *(("aborted", 1), ("committed", 3), ("hanging", 1))
    ]
    (holder,) = found.holders
    assert (holder.offsets_held_back, holder.producer_id, holder.outcome) == (5, 9, "hanging")
    assert (holder.reason, found.held_back) == ("no_transactional_id", 1)
