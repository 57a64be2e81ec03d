"""Recovery where the damaged copies of real logs have no case: by the rules of a broker's loader.

F111, F114 to F124. What real brokers did: tests/golden/partitions/test_recovery_equals_broker.py.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, write_producer_snapshot
from kafkalog.storage.recovery.recovery import Cut, RecoveryPlan, RecoverySettings, plan_recovery
from tests.support.logs.samples import batch, record

CLEAN = RecoverySettings(is_clean_shutdown=True)
AT_NINE = bytes(2) + b"\x09" * 32
UNCLEAN = RecoverySettings(is_clean_shutdown=False)


def log_name(offset: int, kind: str = ".log") -> str:
    return f"{offset:020d}{kind}"


def add_segment(directory: Path, base_offset: int, batches: Sequence[bytes]) -> Path:
    for name, data in write_segment(batches, base_offset).by_name.items():
        (directory / name).write_bytes(data)
    return directory / log_name(base_offset)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Offsets 0 to 8 in three segments of a batch each."""
    partition = tmp_path / "orders-0"
    partition.mkdir()
    for base_offset in (0, 3, 6):
        add_segment(partition, base_offset, [batch(base_offset)])
    return partition


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


def plan(directory: Path, settings: RecoverySettings = UNCLEAN) -> RecoveryPlan:
    return plan_recovery(str(directory), settings)


@pytest.mark.parametrize(
    ("content", "starts", "recovered"),
    [
        # What TransactionIndex.sanityCheck of Kafka 4.4.0 made of these.
        (bytes(5), True, []),
        (AT_NINE + bytes(5), True, []),
        (b"\0\1" + AT_NINE[2:], False, []),
        (b"\xff\xff" + AT_NINE[2:], False, []),
        # The last offset lies below the segment.
        (bytes(34), True, [3]),
    ],
)
def test_what_a_broker_makes_of_a_transaction_index(
    content: bytes, starts: bool, recovered: list[int], directory: Path
) -> None:
    # F121.
    (directory / log_name(3, ".txnindex")).write_bytes(content)
    found = plan(directory, CLEAN)
    assert (found.start_error is None, found.recovered_segments) == (starts, recovered)


def test_after_a_clean_stop_nothing_is_checked(directory: Path) -> None:
    # F121.
    flip(directory / log_name(0), 70)
    found = plan(directory, CLEAN)
    assert (found.log_end_offset, found.cuts, found.recovered_segments) == (9, [], [])


def test_all_segments_behind_a_cut_go(directory: Path) -> None:
    # F122.
    flip(directory / log_name(3), 70)
    found = plan(directory)
    assert (found.log_end_offset, found.deleted_segments) == (3, [6])
    assert found.cuts[0].file == log_name(3)
    assert found.cuts[0].position == 0
    assert found.recovered_segments == [0, 3]
    assert {name for name in found.files if name.endswith(".deleted")} == {
        f"{log_name(6, kind)}.deleted" for kind in (".log", ".index", ".timeindex")
    }


@pytest.mark.parametrize(("point", "recovered"), [(0, [0, 3, 6]), (4, [3, 6]), (6, [6]), (9, [6])])
def test_segments_are_recovered_from_the_recovery_point_on(
    point: int, recovered: list[int], directory: Path
) -> None:
    # F121.
    settings = RecoverySettings(is_clean_shutdown=False, recovery_point=point)
    assert plan(directory, settings).recovered_segments == recovered


def test_a_segment_without_an_index_is_recovered_even_after_a_clean_stop(directory: Path) -> None:
    # F121.
    (directory / log_name(3, ".index")).unlink()
    assert plan(directory, CLEAN).recovered_segments == [3]


@pytest.mark.parametrize("left", [1, 17])
def test_a_few_bytes_behind_the_last_batch_are_cut(left: int, directory: Path) -> None:
    # F113.
    path = directory / log_name(6)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"\1" * left)
    assert plan(directory).cuts == [Cut(log_name(6), size, "the file ends inside a batch")]


def test_offsets_below_the_segment_keep_a_broker_from_starting(directory: Path) -> None:
    # F114.
    add_segment(directory, 6, [batch(1)])
    found = plan(directory)
    assert found.start_error is not None
    assert found.log_end_offset is None


def test_a_log_that_ends_below_its_start_begins_again(directory: Path) -> None:
    # F123.
    found = plan(directory, RecoverySettings(is_clean_shutdown=False, log_start_offset=50))
    assert (found.log_start_offset, found.log_end_offset) == (50, 50)
    assert found.deleted_segments == [0, 3, 6]
    assert found.files[log_name(50)] == 0


def test_the_snapshots_of_a_log_that_begins_again_go_at_once(directory: Path) -> None:
    # F123, as tests/broker/damage/test_recovery_plan_on_broker.py has seen it; segments wait
    # renamed.
    (directory / log_name(3, ".snapshot")).write_bytes(write_producer_snapshot([]))
    found = plan(directory, RecoverySettings(is_clean_shutdown=True, log_start_offset=50))
    assert [name for name in found.files if name.endswith(".snapshot.deleted")] == []
    assert found.deleted_snapshots == [3]
    assert log_name(3, ".log.deleted") in found.files


def test_an_empty_directory_begins_at_the_log_start(tmp_path: Path) -> None:
    found = plan(tmp_path, RecoverySettings(is_clean_shutdown=False, log_start_offset=7))
    assert (found.log_start_offset, found.log_end_offset) == (7, 7)


def test_files_of_a_cleaning_that_was_not_finished_go(directory: Path) -> None:
    # F117, T32.
    for name in (
        log_name(0, ".log.cleaned"),
        log_name(3, ".log.swap"),
        log_name(6, ".log.deleted"),
    ):
        (directory / name).write_bytes(batch(0))
    found = plan(directory)
    assert [name for name in found.files if "swap" in name or "cleaned" in name] == []
    assert found.log_end_offset == 9


def test_a_finished_swap_takes_the_place_of_what_it_covers(directory: Path) -> None:
    # F117, T32.
    merged = batch(0) + batch(3)
    (directory / log_name(0, ".log.swap")).write_bytes(merged)
    (directory / log_name(0, ".index.swap")).write_bytes(b"")
    found = plan(directory, CLEAN)
    logs = {name: size for name, size in found.files.items() if name.endswith(".log")}
    assert logs == {log_name(0): len(merged), log_name(6): len(batch(6))}
    assert found.log_end_offset == 9


def test_an_index_without_its_log_goes(directory: Path) -> None:
    # F117.
    (directory / log_name(3)).unlink()
    assert log_name(3, ".index") not in plan(directory).files


def transactional(first: int, *, in_transaction: bool = True) -> bytes:
    fields = BatchFields(
        producer_id=7, producer_epoch=0, base_sequence=first, is_transactional=in_transaction
    )
    return write_batch([record(first)], fields)


def control(offset: int, kind: int) -> bytes:
    key, value = bytes((0, 0, 0, kind)), bytes(6)
    fields = BatchFields(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    return write_batch([Record(offset, 1, 0, key, value)], fields)


def test_a_batch_outside_the_open_transaction_keeps_a_broker_from_starting(directory: Path) -> None:
    # F111.
    add_segment(directory, 6, [transactional(6), transactional(7, in_transaction=False)])
    assert "transaction open since offset 6" in (plan(directory).start_error or "")


def test_a_control_record_of_unknown_type_keeps_a_broker_from_starting(directory: Path) -> None:
    # F112.
    add_segment(directory, 6, [transactional(6), control(7, kind=9)])
    assert "type 9" in (plan(directory).start_error or "")


def test_a_transaction_that_was_ended_is_not_a_hindrance(directory: Path) -> None:
    # F112.
    batches = [transactional(6), control(7, kind=1), transactional(8, in_transaction=False)]
    add_segment(directory, 6, batches)
    found = plan(directory)
    assert (found.start_error, found.log_end_offset) == (None, 9)


def test_stray_snapshots_go_but_for_one_behind_the_log(directory: Path) -> None:
    # F119, F120.
    snapshot = write_producer_snapshot([ProducerEntry(7, 0, 0, 0, 0, 1000, -1, -1)])
    for offset in (2, 3, 9):
        (directory / log_name(offset, ".snapshot")).write_bytes(snapshot)
    settings = RecoverySettings(is_clean_shutdown=True, now_ms=1000)
    assert plan(directory, settings).deleted_snapshots == [2]


def test_epochs_are_taken_up_only_if_they_rise(directory: Path) -> None:
    # F116: of the epochs 5, 3, 7 the second is never known.
    (directory / "leader-epoch-checkpoint").write_text("0\n0\n")
    add_segment(directory, 0, [batch(0, epoch=5)])
    add_segment(directory, 3, [batch(3, epoch=3)])
    add_segment(directory, 6, [batch(6, epoch=7)])
    assert plan(directory).leader_epochs == [(5, 0), (7, 6)]


def test_an_index_that_points_before_the_file_is_read_from_its_begin(directory: Path) -> None:
    # F118: a broker of 4.4.0 starts (tests/support/broker/node_starts/read_damages.py).
    (directory / log_name(6, ".index")).write_bytes((5).to_bytes(4, "big") + b"\xff" * 4)
    found = plan(directory, CLEAN)
    assert (found.start_error, found.log_end_offset) == (None, 6)


def test_a_marker_that_cannot_be_read_keeps_a_broker_from_starting_behind_a_snapshot(
    directory: Path,
) -> None:
    # F119: batches behind the newest snapshot are read again, after a clean stop as well.
    snapshot = write_producer_snapshot([])
    (directory / log_name(6, ".snapshot")).write_bytes(snapshot)
    fields = BatchFields(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    add_segment(directory, 6, [write_batch([Record(6, 1, 0, b"", b"")], fields)])
    error = plan(directory, CLEAN).start_error or ""
    assert error.startswith(f"{directory / log_name(6)}: position 0: ")


def test_a_broker_does_not_start_with_a_segment_whose_name_is_not_an_offset(
    directory: Path,
) -> None:
    # F961: Java's Long.parseLong fails on twenty nines.
    (directory / f"{'9' * 20}.log").touch()
    (directory / f"{'9' * 20}.snapshot").touch()
    assert f"{'9' * 20}.log, {'9' * 20}.snapshot: " in (plan(directory).start_error or "")


@pytest.mark.parametrize("kind", [".log", ".index", ".snapshot"])
def test_digits_of_other_scripts_are_not_an_offset(kind: str, directory: Path) -> None:
    # F961: a superscript is a digit to str.isdigit, and no number to int nor to Java.
    (directory / f"{0:019d}\u00b2{kind}").touch()
    assert plan(directory).start_error is not None


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        # What brokers of 4.1.0 and 4.4.0 did: fixtures 43a, 43b and 44.
        ("seg.log", False),
        ("00000000000000000015 (copy).log", False),
        ("old.index", False),
        # Names that end in none of the endings are not looked at.
        ("seg.log.bak", True),
        ("notes.txt", True),
        ("leader-epoch-checkpoint.tmp", True),
    ],
)
def test_a_name_that_ends_as_a_part_of_a_log_begins_with_an_offset(
    name: str, starts: bool, directory: Path
) -> None:
    # F961.
    (directory / name).touch()
    assert (plan(directory).start_error is None) == starts


def test_a_segment_whose_offsets_overflow_is_split(directory: Path) -> None:
    # F971, as a broker of 4.4.0 did with fixture 11a.
    far = 2**31 + 5
    for path in directory.glob("*"):
        path.unlink()
    for base_offset, batches in ((0, [batch(0), batch(3)]), (far, [batch(far)])):
        add_segment(directory, base_offset, batches)
    joined = b"".join((directory / log_name(base)).read_bytes() for base in (0, far))
    for path in directory.glob("*"):
        path.unlink()
    (directory / log_name(0)).write_bytes(joined)
    found = plan(directory)
    assert (found.start_error, found.log_end_offset) == (None, far + 3)
    assert {log_name(0), log_name(far)} <= found.files.keys()
    assert found.files[log_name(0)] == 2 * (found.files[log_name(far)] or 0)
