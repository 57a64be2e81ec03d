"""A sound replica makes up for any damage in another: each record is read once, whatever is asked;
and nothing is lost without a word where none is sound. Rules: F99, F171, F174, F175.

What is expected are the records of the sound replica alone.
"""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.records import filled_records
from kafkalog.errors import CorruptDataError, DataLossError
from kafkalog.format.segment_writer import write_segment
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.reading import read_segment
from kafkalog.wire.checksums import crc32c
from tests.support.logs.log_dirs import add_meta_properties, log_name
from tests.support.logs.samples import batch

COLUMNS = ("offset", "timestampMs", "key", "value")


def write_replica(log_dir: Path, broker: int, segments: dict[int, list[bytes]]) -> Path:
    """A broker's log directory with orders-0."""
    add_meta_properties(log_dir, node_id=broker)
    partition = log_dir / "orders-0"
    partition.mkdir()
    for base, batches in segments.items():
        for name, content in write_segment(batches, base).by_name.items():
            (partition / name).write_bytes(content)
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return partition


def records(*log_dirs: Path, **options: str) -> list[dict[str, Any]]:
    """What view records gives, by offset; damage that is left is an error."""
    paths = [str(path) for path in log_dirs]
    given = {"paths": str(paths).replace("'", '"'), **options}
    parsed = read_options(given)
    rows: list[dict[str, Any]] = []
    for group in planned_groups(parsed):
        for read in group:
            assert isinstance(read, SegmentRead)
            for found in read_segment(read, parsed, COLUMNS):
                rows += found.to_pylist()
    return sorted(rows, key=lambda row: row["offset"])


@st.composite
def logs(draw: st.DrawFn) -> dict[int, list[bytes]]:
    """One to three segments of batches without gaps; no two batches are the same."""
    segments: dict[int, list[bytes]] = {}
    offset = 0
    for count in draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)):
        batches = segments[offset] = []
        for _ in range(count):
            size = draw(st.integers(1, 4))
            batches.append(batch(offset, size, value=b"%d" % offset * draw(st.integers(1, 30))))
            offset += size
    return segments


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, float, float, bytes]:
    """What happens, where in the files of the log, and to how much of them, as parts of one."""
    kind = draw(st.sampled_from(("flip", "zeros", "garbage", "cut", "lost", "inserted")))
    part = st.floats(0, 1, exclude_max=True)
    return kind, draw(part), draw(part), draw(st.binary(min_size=1, max_size=100))


def damage(partition: Path, kind: str, place: float, extent: float, noise: bytes) -> None:
    files = sorted(partition.glob("*.log"))
    sizes = [path.stat().st_size for path in files]
    position = int(place * sum(sizes))
    number = 0
    while position >= sizes[number]:
        position -= sizes[number]
        number += 1
    path = files[number]
    data = bytearray(path.read_bytes())
    length = 1 + int(extent * (len(data) - position))
    if kind == "flip":
        data[position] ^= 1 << int(extent * 8)
    elif kind == "zeros":
        data[position : position + length] = bytes(min(length, len(data) - position))
    elif kind == "garbage":
        data[position : position + len(noise)] = noise
    elif kind == "inserted":
        data[position:position] = noise
    elif kind == "cut":
        del data[position:]
    elif kind == "lost":
        path.unlink()
        return
    path.write_bytes(data)


@given(logs(), st.lists(damages(), min_size=1, max_size=3), st.booleans(), st.integers(1, 500))
def test_a_sound_replica_makes_up_for_any_damage(
    segments: dict[int, list[bytes]],
    harm: list[tuple[str, float, float, bytes]],
    damaged_first: bool,
    task_bytes: int,
) -> None:
    with tempfile.TemporaryDirectory() as place:
        sound, damaged = Path(place) / "sound", Path(place) / "damaged"
        write_replica(sound, 2 if damaged_first else 1, segments)
        partition = write_replica(damaged, 1 if damaged_first else 2, segments)
        for each in harm:
            if any(path.stat().st_size for path in partition.glob("*.log")):
                damage(partition, *each)
        whole = records(sound)
        assert records(damaged, sound) == whole
        # F501: in parts as well, of files without entries in their indexes.
        assert records(damaged, sound, maxPartitionBytes=str(task_bytes)) == whole
        end = whole[-1]["offset"] + 1
        for first in (0, end // 2, end - 1):
            # The record at offset n has the timestamp 1000 + n.
            for bound in ("startingTimestamp", "endingTimestamp"):
                asked = {bound: str(1000 + first)}
                assert records(damaged, sound, **asked) == records(sound, **asked)
        for bound in (end // 2, end):
            asked = {"startingOffsets": f'{{"orders":{{"0":{bound}}}}}'}
            assert records(damaged, sound, **asked) == whole[bound:]


BATCHES = [batch(0), batch(3), batch(6), batch(9)]
SIZE = len(BATCHES[0])


def spoil(partition: Path, *positions: int) -> None:
    path = partition / log_name(0)
    data = bytearray(path.read_bytes())
    for position in positions:
        data[position] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("batches", "spoilt"),
    [
        # Behind the last batch that either has; the other one ends before.
        ((4, 4), ((3,), (3,))),
        ((4, 2), ((3,), ())),
        # Half of one batch's offsets are elsewhere.
        ((4, 4), ((1, 2), (2,))),
    ],
)
def test_damage_that_is_not_made_up_for_as_a_whole_is_an_error(
    batches: tuple[int, int], spoilt: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    # F174
    for broker, (count, numbers) in enumerate(zip(batches, spoilt, strict=True), start=1):
        partition = write_replica(tmp_path / f"b{broker}", broker, {0: BATCHES[:count]})
        spoil(partition, *(number * SIZE + 70 for number in numbers))
    with pytest.raises(CorruptDataError):
        records(tmp_path / "b1", tmp_path / "b2")


def test_records_that_cannot_be_read_next_to_a_gap_are_an_error(tmp_path: Path) -> None:
    # F174 and F27: a wrong count under a right checksum, in all replicas.
    data = bytearray(batch(6))
    data[57:61] = (2).to_bytes(4, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    for broker in (1, 2):
        write_replica(tmp_path / f"b{broker}", broker, {0: [batch(0), bytes(data), batch(9)]})
    with pytest.raises(CorruptDataError, match="record_count"):
        records(tmp_path / "b1", tmp_path / "b2")


def test_part_of_a_damaged_range_is_not_the_whole(tmp_path: Path) -> None:
    # F174: 3 to 5 of a range without a batch come from the other, 6 to 8 from nowhere.
    first = write_replica(tmp_path / "b1", 1, {0: BATCHES})
    path = first / log_name(0)
    data = path.read_bytes()
    path.write_bytes(data[:SIZE] + b"\xff" * 2 * SIZE + data[3 * SIZE :])
    spoil(write_replica(tmp_path / "b2", 2, {0: BATCHES}), 2 * SIZE + 70)
    with pytest.raises(CorruptDataError):
        records(tmp_path / "b1", tmp_path / "b2")


@pytest.mark.parametrize("damaged_broker", [1, 2])
def test_a_wrong_offset_shows_where_the_segments_after_it_are_lost(
    damaged_broker: int, tmp_path: Path
) -> None:
    # F172: what has the same bytes is not in the other's last segment.
    segments = {0: [batch(0, value=b"0"), batch(3, value=b"3")], 6: [batch(6), batch(9)]}
    write_replica(tmp_path / "sound", 3 - damaged_broker, segments)
    partition = write_replica(tmp_path / "damaged", damaged_broker, segments)
    (partition / log_name(6)).unlink()
    path = partition / log_name(0)
    data = bytearray(path.read_bytes())
    data[len(segments[0][0]) + 5] ^= 1
    path.write_bytes(data)
    found = [row["offset"] for row in records(tmp_path / "damaged", tmp_path / "sound")]
    assert found == list(range(12))


def replicas_of_two_epochs(place: Path) -> tuple[Path, Path]:
    """Broker 1 leads from 12 on and has lost the second half of its file; 2 is sound."""
    first = write_replica(place / "b1", 1, {0: BATCHES})
    (first / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 12\n")
    (first / log_name(0)).write_bytes(b"".join(BATCHES[:2]))
    write_replica(place / "b2", 2, {0: BATCHES})
    return place / "b1", place / "b2"


def test_the_log_ends_where_the_best_lineage_does(tmp_path: Path) -> None:
    # F171 and F98: the end is not an offset outside, and times behind the best one's end are found.
    places = replicas_of_two_epochs(tmp_path)
    assert records(*places, startingOffsets='{"orders":{"0":12}}') == []
    with pytest.raises(DataLossError, match="holds 0 up to 12"):
        records(*places, startingOffsets='{"orders":{"0":13}}')
    found = records(*places, startingTimestamp="1010")
    assert [row["offset"] for row in found] == [10, 11]
    # A cleaner leaves no gap at the end.
    (places[0] / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    assert len(records(*places)) == 12


def test_a_replica_without_a_segment_is_not_a_log(tmp_path: Path) -> None:
    # F171
    places = replicas_of_two_epochs(tmp_path)
    (places[0] / "orders-0" / log_name(0)).unlink()
    assert len(records(*places)) == 12


@pytest.mark.parametrize("text", ["0\n3\n1 0\n2 100\n3 5\n", f"0\n1\n{2**40} 0\n"])
def test_leader_epochs_that_cannot_be_show_nothing(text: str, tmp_path: Path) -> None:
    # F171
    write_replica(tmp_path / "b2", 2, {0: BATCHES[:1]})
    first = write_replica(tmp_path / "b1", 1, {0: BATCHES})
    (first / "leader-epoch-checkpoint").write_text(text)
    assert len(records(tmp_path / "b1", tmp_path / "b2")) == 12


def test_many_gaps_cost_one_pass_over_the_other_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 3,000 gaps took half a minute when each was looked for by itself.
    batches = [batch(4 * number) for number in range(3000)]
    for broker in (1, 2):
        write_replica(tmp_path / f"b{broker}", broker, {0: batches})
    opened: list[str] = []

    def noted(path: str) -> InputFile:
        opened.append(path)
        return InputFile(path)

    monkeypatch.setattr(filled_records, "InputFile", noted)
    assert len(records(tmp_path / "b1", tmp_path / "b2")) == 9000
    assert len(opened) == 1
