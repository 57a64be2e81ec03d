"""What the report finds in logs that no cleaner can have left. Rules: F255 to F261."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.inspection.partitions import compaction_report
from kafkalog.inspection.partitions.compaction_report import compaction_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.topic_configs import TopicConfigs
from kafkalog.storage.partition_log import PartitionLog
from tests.support.logs.samples import record
from tests.support.spark.kafka_logs import write_log

NOW_MS = 10_000
COMPACT = TopicConfigs({"users": {"cleanup.policy": "compact"}}).compaction("users")


def users(place: Path, segments: Mapping[int, Sequence[bytes]], checkpoint: int) -> PartitionLog:
    """users-0 with these segments, cleaned up to an offset."""
    write_log(place, "users-0", segments)
    (place / "cleaner-offset-checkpoint").write_text(f"0\n1\nusers 0 {checkpoint}\n")
    (log,) = find_partitions([str(place)])
    return log


def report(log: PartitionLog, before: PartitionLog | None = None) -> dict[str, Any]:
    (row,) = compaction_rows(log, COMPACT, NOW_MS, before)
    return dict(row)


def found(row: Mapping[str, Any], *columns: str) -> list[tuple[object, ...]]:
    columns = columns or ("kind", "severity", "offset")
    return [tuple(each[name] for name in columns) for each in row["findings"]]


def plain(offset: int, key: bytes | None, value: bytes | None = b"v") -> bytes:
    return write_batch([record(offset, value, key)])


def of_producer(
    offset: int, *records: Record, control: int | None = None, transactional: bool = False
) -> bytes:
    """A batch of producer 9, empty without records, or its marker."""
    if control is not None:
        value = struct.pack(">hi", 0, 0)
        records = (Record(offset, 7, 0, struct.pack(">hh", 0, control), value),)
    fields = BatchFields(
        producer_id=9,
        producer_epoch=0,
        base_sequence=-1 if control is not None else offset,
        is_transactional=transactional or control is not None,
        is_control=control is not None,
        base_offset=offset,
        last_offset=offset,
    )
    return write_batch(records, fields)


def test_a_clean_log_has_no_finding_and_duplicates_above_the_checkpoint_are_none(
    tmp_path: Path,
) -> None:
    # T42.
    batches = [plain(0, b"a"), plain(2, b"b"), plain(3, b"a")]
    row = report(users(tmp_path, {0: batches}, 3))
    assert found(row) == []
    assert (row["cleaned_keys"], row["cleaned_records"], row["errors"]) == (2, 2, 0)


def test_a_duplicate_below_the_checkpoint_is_found(tmp_path: Path) -> None:
    # F255.
    batches = [plain(0, b"a"), plain(2, b"b"), plain(3, b"a")]
    log = users(tmp_path, {0: batches}, 4)
    row = report(log)
    columns = ("kind", "severity", "offset", "other_offset", "key", "position", "file")
    assert found(row, *columns) == [("duplicate_key", "error", 0, 3, b"a", 0, log.segments[0].path)]
    assert (row["errors"], row["warnings"]) == (1, 0)


def test_a_checkpoint_can_lie_inside_a_batch(tmp_path: Path) -> None:
    # F255: where the cleaner's map of keys was full, it ended there.
    batch = write_batch([record(0, key=b"a"), record(1, key=b"b"), record(2, key=b"a")])
    row = report(users(tmp_path / "2", {0: [batch], 3: []}, 2))
    assert (found(row), row["cleaned_records"]) == ([], 2)
    row = report(users(tmp_path / "3", {0: [batch], 3: []}, 3))
    assert found(row) == [("duplicate_key", "error", 0)]


def test_a_record_without_a_key_below_the_checkpoint_is_found(tmp_path: Path) -> None:
    # F255.
    log = users(tmp_path, {0: [plain(0, None), plain(1, b"a"), plain(2, None)]}, 2)
    assert found(report(log)) == [("null_key", "error", 0)]


def test_keys_of_control_records_are_not_keys(tmp_path: Path) -> None:
    # T14: two commits, and a record with the key that a commit has.
    batches = [
        of_producer(0, record(0, key=b"a"), transactional=True),
        of_producer(1, control=COMMIT),
        of_producer(2, record(2, key=struct.pack(">hh", 0, COMMIT)), transactional=True),
        of_producer(3, control=COMMIT),
    ]
    row = report(users(tmp_path, {0: batches, 4: []}, 4))
    assert (found(row), row["cleaned_keys"]) == ([], 2)


def test_aborted_records_below_the_checkpoint_are_found(tmp_path: Path) -> None:
    # F255; T16: the marker lies behind the checkpoint, in another segment.
    batches = [of_producer(0, record(0, key=b"a"), transactional=True)]
    row = report(users(tmp_path, {0: batches, 1: [of_producer(1, control=ABORT)]}, 1))
    assert found(row) == [("aborted_records", "error", 0)]
    emptied = [of_producer(0, transactional=True)]
    row = report(users(tmp_path / "2", {0: emptied, 1: [of_producer(1, control=ABORT)]}, 1))
    assert found(row) == []


def test_a_transaction_without_an_end_below_the_checkpoint_is_found(tmp_path: Path) -> None:
    # F256; T17.
    batches = [of_producer(0, record(0, key=b"a"), transactional=True), plain(1, b"b")]
    row = report(users(tmp_path, {0: batches}, 2))
    assert found(row) == [("open_transaction", "error", 0)]
    assert row["last_stable_offset"] == 0


def test_an_empty_batch_without_a_need_is_found(tmp_path: Path) -> None:
    # F257; T5: legal as the last of its producer, or at the end of a round.
    last = write_batch((), BatchFields(base_offset=5, last_offset=5))
    stray = write_batch((), BatchFields(base_offset=3, last_offset=3))
    batches = [of_producer(0), of_producer(1, record(1)), stray, of_producer(4), last]
    assert found(report(users(tmp_path, {0: batches}, 6))) == [
        ("empty_batch", "warning", 0),
        ("empty_batch", "warning", 3),
    ]


def test_tombstones_and_markers_past_their_horizon_are_counted_and_no_finding(
    tmp_path: Path,
) -> None:
    # F258; T7 and T42.
    def tombstone(offset: int, key: bytes, horizon_ms: int) -> bytes:
        fields = BatchFields(delete_horizon_ms=horizon_ms)
        return write_batch([record(offset, None, key)], fields)

    batches = [tombstone(0, b"a", NOW_MS), tombstone(1, b"b", NOW_MS + 1), plain(2, b"c", None)]
    row = report(users(tmp_path, {0: batches}, 3))
    assert (found(row), row["expired_tombstones"], row["cleaned_records"]) == ([], 1, 3)


def test_of_a_checkpoint_above_the_log_end_nothing_is_promised(tmp_path: Path) -> None:
    # T42.
    row = report(users(tmp_path, {0: [plain(0, b"a"), plain(1, b"a")], 2: []}, 3))
    assert found(row) == [("checkpoint", "information", 3)]
    assert (row["is_checkpoint_reset"], row["first_dirty_offset"]) == (True, 0)
    assert (row["errors"], row["freeable_bytes"]) == (0, len(plain(0, b"a")))


def test_damage_is_counted_and_the_rest_is_checked(tmp_path: Path) -> None:
    broken = bytearray(plain(1, b"b"))
    broken[-1] ^= 1
    batches = [plain(0, b"a"), bytes(broken), plain(2, b"a")]
    row = report(users(tmp_path, {0: batches}, 3))
    assert (found(row), row["unread_bytes"]) == ([("duplicate_key", "error", 0)], len(broken))


def test_a_log_with_which_no_broker_would_start_is_reported(tmp_path: Path) -> None:
    batches = [of_producer(0, record(0), transactional=True), of_producer(1, record(1))]
    row = report(users(tmp_path, {0: batches}, 2))
    assert found(row, "kind", "severity") == [("transaction", "error")]
    assert row["errors"] == 1


def test_only_so_many_of_a_kind_are_listed_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction_report, "LISTED_COPIES", 2)
    row = report(users(tmp_path, {0: [plain(offset, b"a") for offset in range(5)]}, 5))
    assert (len(row["findings"]), row["errors"]) == (2, 4)


def test_a_log_that_is_not_compacted_has_no_row(tmp_path: Path) -> None:
    write_log(tmp_path, "users-0", {0: [plain(0, b"a")]})
    (log,) = find_partitions([str(tmp_path)])
    settings = TopicConfigs({}, {}).compaction("users")
    assert list(compaction_rows(log, settings, NOW_MS, None)) == []


@pytest.mark.parametrize(
    ("own", "server", "is_due", "why_not"),
    [
        # Two segments of the same size, both dirty.
        ({}, {}, True, None),
        (
            {"min.cleanable.dirty.ratio": "1"},
            {},
            False,
            "dirty ratio 1.000, min.cleanable.dirty.ra",
        ),
        ({"min.compaction.lag.ms": "9994"}, {}, False, "min.compaction.lag.ms 9994 holds back "),
        ({"cleanup.policy": "delete"}, {}, False, "cleanup.policy is delete"),
        # F262: what is not due without a lag is not due with any.
        (
            {"min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": "9000"},
            None,
            False,
            "dirty ratio 1.000",
        ),
        ({"min.cleanable.dirty.ratio": "1"}, None, None, "not known: min.compaction.lag.ms, max.c"),
        # The first dirty batch is 9,000 ms old.
        ({"min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": "8999"}, {}, True, None),
        ({"max.compaction.lag.ms": "8999", "min.compaction.lag.ms": "0"}, None, True, None),
        (
            {"max.compaction.lag.ms": "8999", "min.compaction.lag.ms": "9994"},
            {},
            False,
            "min.compaction.lag.ms 9994 holds back ",
        ),
        ({"min.cleanable.dirty.ratio": "0"}, None, None, "not known: min.compaction.lag.ms"),
        ({}, None, None, "not known: min.compaction.lag.ms, min.cleanable.dirty.ratio"),
        ({"cleanup.policy": None}, None, None, "not known: cleanup.policy, min.comp"),
    ],
)
def test_a_partition_is_due_if_all_that_decides_it_is_known(
    own: dict[str, str | None],
    server: dict[str, str] | None,
    is_due: bool | None,
    why_not: str | None,
    tmp_path: Path,
) -> None:
    # F240, F241; the record of offset N has the timestamp 1000 + N.
    log = users(tmp_path, {0: [plain(0, b"a")], 1: [plain(1, b"a")], 2: [plain(2, b"b")]}, 0)
    configs = TopicConfigs({"users": {"cleanup.policy": "compact", **own}}, server)
    (row,) = compaction_rows(log, configs.compaction("users"), NOW_MS, None)
    assert (row["is_due"], str(row["why_not"])[: len(why_not or "None")]) == (
        is_due,
        why_not or "None",
    )


BEFORE = {0: [plain(0, b"a"), plain(1, b"b", b"1"), plain(2, b"a"), plain(3, b"c", None)]}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        # What a cleaner can do: drop what is old, and tombstones.
        ([plain(1, b"b", b"1"), plain(2, b"a")], []),
        # A key is missing, or went back.
        ([plain(2, b"a")], [("lost_key", "error", 1, b"b", None)]),
        ([plain(0, b"a"), plain(1, b"b", b"1")], [("lost_key", "error", 2, b"a", 0)]),
        # A tombstone is missing, and what it deleted is back.
        (
            [plain(0, b"c"), plain(1, b"b", b"1"), plain(2, b"a")],
            [("lost_key", "error", 3, b"c", 0)],
        ),
        # Another value under the same offset; a record under an offset that was another's.
        ([plain(1, b"b", b"2"), plain(2, b"a")], [("changed_record", "error", 1, b"b", None)]),
        (
            [plain(1, b"b", b"1"), plain(2, b"a"), plain(3, b"d")],
            [("unknown_record", "error", 3, b"d", None)],
        ),
        # Records that came since explain what is missing.
        ([plain(2, b"a"), plain(7, b"b")], []),
    ],
)
def test_what_two_copies_differ_in(
    after: Sequence[bytes], expected: Sequence[tuple[object, ...]], tmp_path: Path
) -> None:
    # F259.
    before = users(tmp_path / "before", BEFORE, 0)
    row = report(users(tmp_path / "after", {0: after}, 2), before)
    assert found(row, "kind", "severity", "offset", "key", "other_offset") == expected
    assert row["before_directory"] == before.path


def test_a_key_that_a_later_tombstone_may_have_deleted_is_a_warning(tmp_path: Path) -> None:
    # F260: the log was cleaned beyond the end that the first copy had.
    before = users(tmp_path / "before", BEFORE, 0)
    after = {0: [plain(2, b"a"), plain(8, b"e")], 9: [plain(9, b"f")]}
    row = report(users(tmp_path / "after", after, 9), before)
    assert found(row) == [("lost_key", "warning", 1)]


def test_what_lies_below_the_log_start_is_not_lost(tmp_path: Path) -> None:
    # F259.
    before = users(tmp_path / "before", BEFORE, 0)
    users(tmp_path / "after", {0: [plain(2, b"a")]}, 3)
    (tmp_path / "after" / "log-start-offset-checkpoint").write_text("0\n1\nusers 0 2\n")
    (log,) = find_partitions([str(tmp_path / "after")])
    assert found(report(log, before)) == []


def test_what_is_damaged_in_the_earlier_copy_is_unknown_in_the_later(tmp_path: Path) -> None:
    # F259: what docs/options.md says of option `before`.
    broken = bytearray(plain(1, b"b"))
    broken[-1] ^= 1
    before = users(tmp_path / "before", {0: [plain(0, b"a"), bytes(broken), plain(2, b"c")]}, 0)
    batches = [plain(0, b"a"), plain(1, b"b"), plain(2, b"c")]
    row = report(users(tmp_path / "after", {0: batches}, 3), before)
    assert found(row) == [("unknown_record", "error", 1)]
