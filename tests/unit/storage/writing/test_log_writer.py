"""Appending to a log of one's own: what is refused, where segments end, when data is on disk.

F102, F106, F149 to F151, F158.
"""

from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError, LogDirError, OptionError
from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.indexes import read_offset_index, read_time_index
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import batch, consecutive, record
from tests.unit.storage.written_logs import Machine, bases, log_of, writer

SIZE = len(batch(0))
DAY_MS = 86_400_000


def timed(offset: int, time_ms: int, count: int = 1) -> bytes:
    return write_batch([Record(offset + i, time_ms, 0, None, b"v") for i in range(count)])


def test_a_closed_segment_has_the_bytes_of_one_written_whole(place: Path, machine: Machine) -> None:
    # F100 to F102, F158: broker tests take write_segment's bytes for a broker's own.
    batches = [batch(i * 3, value=b"x" * 700) for i in range(40)]
    with writer(place, machine) as log:
        for each in batches:
            log.append(each)
    for name, content in write_segment(batches, 0).by_name.items():
        assert (place / name).read_bytes() == content


def test_appends_go_to_the_newest_file(place: Path, machine: Machine) -> None:
    # F149
    batches = consecutive(7)
    with writer(place, machine, segment_bytes=3 * SIZE) as log:
        for each in batches:
            log.append(each)
            newest = log_of(place, bases(place)[-1])
            assert newest.endswith(each)
    joined = b"".join(log_of(place, base) for base in bases(place))
    assert joined == b"".join(batches)
    assert log.next_offset == 21


@pytest.mark.parametrize(
    ("segment_bytes", "expected"), [(2 * SIZE, [0, 6]), (2 * SIZE - 1, [0, 3, 6, 9])]
)
def test_a_file_is_never_larger_than_allowed(
    segment_bytes: int, expected: list[int], place: Path, machine: Machine
) -> None:
    # F150: a segment is exactly filled, and not by one byte more.
    with writer(place, machine, segment_bytes=segment_bytes) as log:
        for each in consecutive(4):
            log.append(each)
    assert bases(place) == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([1000, 2000], [0], id="as late as allowed"),
        pytest.param([1000, 2001], [0, 1], id="later than allowed"),
        pytest.param([1000, 1500, 2001, 2500, 3002], [0, 2, 4], id="each from its first batch"),
        pytest.param([0, 1001], [0, 1], id="a time of 0 is a time"),
        pytest.param([9000, 1, 2], [0], id="back in time"),
    ],
)
def test_time_is_counted_from_the_first_batch_by_the_messages_own_times(
    times: list[int], expected: list[int], place: Path, machine: Machine
) -> None:
    # F150: the clock does not matter where messages have times.
    with writer(place, machine, segment_ms=1000) as log:
        for offset, time_ms in enumerate(times):
            machine.now_ms += DAY_MS
            log.append(timed(offset, time_ms))
    assert bases(place) == expected


def test_without_times_it_is_counted_from_when_the_file_was_made(
    place: Path, machine: Machine
) -> None:
    # F150
    with writer(place, machine, segment_ms=1000) as log:
        for offset, now in enumerate([500, 1000, 1001, 2001, 2002]):
            machine.now_ms = 1_000_000 + now
            log.append(timed(offset, -1))
    assert bases(place) == [0, 2, 4]


def test_an_empty_segment_waits_for_its_first_batch(place: Path, machine: Machine) -> None:
    # F150
    with writer(place, machine, segment_ms=1000) as log:
        machine.now_ms += DAY_MS
        log.append(timed(0, -1))
    assert bases(place) == [0]


@pytest.mark.parametrize(
    ("index_bytes", "has_times", "entries"),
    [
        pytest.param(48, True, 3, id="a time index of 4 places keeps one for the last entry"),
        pytest.param(24, True, 1, id="of 2 places"),
        pytest.param(48, False, 6, id="without times the offset index has 6 places"),
    ],
)
def test_a_full_index_ends_a_segment(
    index_bytes: int, has_times: bool, entries: int, place: Path, machine: Machine
) -> None:
    # F150: the first batch of a segment has no entry.
    with writer(place, machine, index_interval_bytes=0, segment_index_bytes=index_bytes) as log:
        for offset in range(20):
            log.append(timed(offset, offset if has_times else -1))
    index = read_offset_index((place / f"{0:020d}.index").read_bytes(), 0).entries
    times = read_time_index((place / f"{0:020d}.timeindex").read_bytes(), 0).entries
    assert len(index) == entries
    assert len(times) == (entries if has_times else 0)
    assert bases(place)[1] == entries + 1


def test_an_offset_too_far_from_the_name_begins_a_segment(place: Path, machine: Machine) -> None:
    # F150: 2^31 - 1 is the largest distance that an index can hold.
    far = 2**31 - 1
    with writer(place, machine) as log:
        log.append(timed(0, 1))
        log.append(timed(far, 1))
        log.append(timed(far + 1, 1))
    assert bases(place) == [0, far + 1]


def test_a_segment_is_named_by_its_first_offset_or_the_logs_end(
    place: Path, machine: Machine
) -> None:
    # F158: gaps of a cleaned log lie before the name in format 2, after the name in the others.
    wrapper = write_message_set([record(50), record(60)], 1, CompressionType.GZIP)
    with writer(place, machine, segment_bytes=max(SIZE, len(wrapper))) as log:
        log.append(batch(0))
        log.append(batch(20))
        log.append(wrapper)
    assert bases(place) == [0, 20, 23]


@pytest.mark.parametrize("start", [0, 77])
def test_a_log_may_begin_anywhere(start: int, place: Path, machine: Machine) -> None:
    with writer(place, machine, start_offset=start) as log:
        log.append(batch(start))
    assert bases(place) == [start]


def damaged(good: bytes) -> bytes:
    return good[:-1] + bytes([good[-1] ^ 1])


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        pytest.param(b"", "truncated", id="nothing"),
        pytest.param(batch(3)[:-1], "truncated", id="part of a batch"),
        pytest.param(batch(3) + batch(6), "length", id="two batches"),
        pytest.param(damaged(batch(3)), "checksum", id="a wrong checksum"),
        pytest.param(batch(2), "offset_order", id="below the end"),
        pytest.param(batch(3, value=b"x" * 1000), "too_large", id="above the largest message"),
    ],
)
def test_what_is_not_a_sound_batch_at_the_end_is_refused(
    wrong: bytes, fault: str, place: Path, machine: Machine
) -> None:
    # F149: and nothing of it is in the file.
    with writer(place, machine, max_message_bytes=1000) as log:
        log.append(batch(0))
        with pytest.raises(CorruptDataError) as raised:
            log.append(wrong)
        assert raised.value.fault == fault
        log.append(batch(3))
    assert log_of(place, 0) == batch(0) + batch(3)


def test_a_message_may_be_as_large_as_allowed(place: Path, machine: Machine) -> None:
    # F149
    with writer(place, machine, max_message_bytes=SIZE, segment_bytes=SIZE) as log:
        log.append(batch(0))
    assert log_of(place, 0) == batch(0)


def test_a_batch_must_fit_a_segment(place: Path, machine: Machine) -> None:
    # F149
    with writer(place, machine, segment_bytes=SIZE - 1) as log, pytest.raises(CorruptDataError):
        log.append(batch(0))


@pytest.mark.parametrize("exists", ["directory", "file"])
def test_nothing_is_written_into_what_is_there(exists: str, place: Path, machine: Machine) -> None:
    # F149
    if exists == "directory":
        place.mkdir()
    else:
        place.touch()
    with pytest.raises(LogDirError, match="exists"):
        writer(place, machine)


def test_nothing_is_written_into_a_brokers_log_directory(place: Path, machine: Machine) -> None:
    # F149
    (place.parent / "meta.properties").touch()
    with pytest.raises(LogDirError, match="broker's log directory"):
        writer(place, machine)
    assert not place.exists()


def test_nothing_is_written_below_a_brokers_log_directory(place: Path, machine: Machine) -> None:
    # F149 and F180: not into one of its partitions, and not by way of a link either.
    (place.parent / "meta.properties").touch()
    (place.parent / "users-0").mkdir()
    (place.parent / "link").symlink_to(place.parent / "users-0", target_is_directory=True)
    for parent in ("users-0", "link"):
        below = place.parent / parent / place.name
        with pytest.raises(LogDirError, match="broker's log directory"):
            writer(below, machine)
        assert not below.exists()


@pytest.mark.parametrize("name", ["orders", "orders-x", "orders-0." + "0" * 32 + "-stray"])
def test_a_log_has_the_name_of_a_topic_and_partition(
    name: str, place: Path, machine: Machine
) -> None:
    # F90
    with pytest.raises(LogDirError, match="<topic>-<partition>"):
        writer(place.with_name(name), machine)


@pytest.mark.parametrize(
    "setting", [{"segment_bytes": 0}, {"segment_bytes": 2**31}, {"segment_index_bytes": 23}]
)
def test_settings_have_bounds(setting: dict[str, int]) -> None:
    with pytest.raises(OptionError):
        LogSettings(**setting)


def test_at_most_m_messages_are_not_on_disk(place: Path, machine: Machine) -> None:
    # F151: M counts messages, not batches; the one that reaches it is flushed with the rest.
    with writer(place, machine, flush_messages=7) as log:
        unflushed = []
        for each in consecutive(6):
            log.append(each)
            unflushed.append(log.next_offset - log.recovery_point)
        assert unflushed == [3, 6, 0, 3, 6, 0]
        stem = f"{0:020d}"
        assert [name for name in machine.taken() if name.startswith(stem)] == [
            f"{stem}.log", f"{stem}.index", f"{stem}.timeindex",
        ] * 2  # fmt: skip


def test_nothing_is_older_than_s_and_not_on_disk(place: Path, machine: Machine) -> None:
    # F151
    with writer(place, machine, flush_ms=500) as log:
        log.append(batch(0))
        machine.now_ms += 499
        log.flush_if_due()
        assert log.recovery_point == 0
        machine.now_ms += 1
        log.flush_if_due()
        assert log.recovery_point == 3
        machine.taken()
        machine.now_ms += 5000
        log.flush_if_due()
        assert machine.taken() == []  # there is nothing to flush
        log.append(batch(3))
        assert log.recovery_point == 6


def test_without_m_and_s_only_the_end_of_a_segment_forces_data_to_disk(
    place: Path, machine: Machine
) -> None:
    # F151: at a crash the newest segment alone can lose anything.
    with writer(place, machine, segment_bytes=2 * SIZE) as log:
        log.append(batch(0))
        machine.now_ms += 1000 * DAY_MS
        log.append(batch(3))
        assert log.recovery_point == 0
        machine.taken()
        log.append(batch(6))
        assert log.recovery_point == 6
        assert f"{0:020d}.log" in machine.taken()
    assert log.recovery_point == 9


def test_new_names_are_forced_to_disk_with_their_files(place: Path, machine: Machine) -> None:
    # F151
    with writer(place, machine) as log:
        log.append(batch(0))
        log.flush()
        assert machine.taken()[-1] == place.name
        log.append(batch(3))
        log.flush()
        assert place.name not in machine.taken()


def test_nothing_is_in_a_directory_but_what_a_broker_leaves(place: Path, machine: Machine) -> None:
    # F158
    with writer(place, machine) as log:
        log.append(batch(0))
    assert sorted(path.name for path in place.iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000003.snapshot",
        "leader-epoch-checkpoint",
    ]
    log.close()  # once more does nothing
