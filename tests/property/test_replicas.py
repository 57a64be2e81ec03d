"""A sound replica makes up for any damage in another: each record is read once. Rules: F174, F175.

What is expected are the records of the sound replica alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.segment_writer import write_segment
from kafkalog.spark.options import read_options
from kafkalog.spark.planning import planned_groups
from kafkalog.spark.reading import read_segment
from kafkalog.storage.read_plan import SegmentRead
from tests.samples import batch
from tests.unit.storage.log_dirs import add_meta_properties

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


@given(logs(), st.lists(damages(), min_size=1, max_size=3), st.booleans())
def test_a_sound_replica_makes_up_for_any_damage(
    segments: dict[int, list[bytes]],
    harm: list[tuple[str, float, float, bytes]],
    damaged_first: bool,
) -> None:
    with tempfile.TemporaryDirectory() as place:
        sound, damaged = Path(place) / "sound", Path(place) / "damaged"
        write_replica(sound, 2 if damaged_first else 1, segments)
        partition = write_replica(damaged, 1 if damaged_first else 2, segments)
        for each in harm:
            if any(path.stat().st_size for path in partition.glob("*.log")):
                damage(partition, *each)
        assert records(damaged, sound) == records(sound)
