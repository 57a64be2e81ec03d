"""Generated damage: salvage keeps every sound record, and its account adds up. F180 to F183."""

import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.inspection.partitions.salvage import SalvageSettings, salvage_partition
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.both_readers import by_reference
from tests.support.logs.samples import batch, joined

SETTINGS = SalvageSettings(now_ms=1, index_interval_bytes=300)
BASES = (0, 12, 24)


def sound_segment(base: int) -> bytes:
    return joined(
        [batch(base + 3 * number, value=bytes([base + number]) * 9) for number in range(4)]
    )


def bit_flips(random_: random.Random, data: bytearray) -> None:
    for _ in range(random_.randint(1, 3)):
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)


def cut(random_: random.Random, data: bytearray) -> None:
    del data[random_.randrange(len(data)) :]


def zeroed_range(random_: random.Random, data: bytearray) -> None:
    start = random_.randrange(len(data))
    size = min(random_.randint(1, 300), len(data) - start)
    data[start : start + size] = bytes(size)


def garbage_range(random_: random.Random, data: bytearray) -> None:
    start = random_.randrange(len(data))
    size = min(random_.randint(1, 300), len(data) - start)
    data[start : start + size] = random_.randbytes(size)


def swapped_blocks(random_: random.Random, data: bytearray) -> None:
    size = random_.randint(1, len(data) // 3)
    first = random_.randrange(len(data) - 2 * size + 1)
    second = random_.randrange(first + size, len(data) - size + 1)
    data[first : first + size], data[second : second + size] = (
        data[second : second + size],
        data[first : first + size],
    )


DAMAGES = (bit_flips, cut, zeroed_range, garbage_range, swapped_blocks)


@given(st.integers(0, 2**32), st.sampled_from(DAMAGES), st.sampled_from(BASES))
def test_salvage_keeps_every_sound_record(seed: int, damage, damaged_base: int) -> None:
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source", "orders-0")
        source.mkdir(parents=True)
        for base in BASES:
            data = bytearray(sound_segment(base))
            if base == damaged_base:
                damage(random_, data)
            (source / f"{base:020d}.log").write_bytes(bytes(data))
        (log,) = find_partitions([str(source.parent)])
        expected = []
        for segment in log.segments:
            data = bytearray(Path(segment.path).read_bytes())
            _, rows = by_reference(bytes(data), segment.base_offset, segment.next_base_offset)
            expected += [row[:6] + row[7:-1] for row in rows]
        target = Path(scratch, "target", "orders-0")
        result = salvage_partition(log, str(target), SETTINGS)
        (written,) = find_partitions([str(target.parent)])
        kept = []
        for segment in written.segments:
            content = Path(segment.path).read_bytes()
            account, rows = by_reference(content, segment.base_offset, segment.next_base_offset)
            assert [row for row in account if row[2] != "none"] == []
            kept += [row[:6] + row[7:-1] for row in rows]
        assert kept == expected
        sizes = sum(segment.size for segment in log.segments)
        lost = sum(each["length"] for each in result["lost_ranges"])  # type: ignore[attr-defined]
        assert (result["source_bytes"], result["lost_bytes"]) == (sizes, lost)
        assert result["broker_starts"], result["start_error"]
