"""Hand-damaged copies of a real broker's segments: what is found, and what is read all the same."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.records.segment_reader import SegmentByteRanges
from tests.support.golden.damaged_variants import FOUND, WHOLE
from tests.support.golden.fixture_sets import Segment, unique_segments
from tests.support.logs.both_readers import by_kernels, by_reference, memory_window
from tests.support.logs.damage_oracle import batch_spans, expectation, is_covered, overlaps
from tests.support.repository import Unpack


def _variant(unpacked: Unpack, name: str) -> list[Segment]:
    return unique_segments(unpacked("unclean.logs") / "variants" / name)


def _ranges(segment: Segment) -> list[dict[str, object]]:
    options = SegmentOptions(segment.base_offset, segment.next_base_offset)
    window = memory_window(segment.path.read_bytes())
    return list(SegmentByteRanges(window, options, is_compacted=False).rows())


def test_every_variant_has_its_expectation(unpacked: Unpack) -> None:
    variants = json.loads((unpacked("unclean.golden") / "recovery.json").read_text())
    assert set(variants) == set(FOUND) | WHOLE


@pytest.mark.parametrize("variant", [*FOUND, *sorted(WHOLE)])
def test_each_fault_is_found_at_its_position(variant: str, unpacked: Unpack) -> None:
    # F62 to F75; T1 to T4, T12, T13, T33.
    found = [
        (row["kind"], row["position"])
        for segment in _variant(unpacked, variant)
        for row in _ranges(segment)
        if row.get("kind")
    ]
    assert found == FOUND.get(variant, [])


@pytest.mark.parametrize("variant", [*FOUND, *sorted(WHOLE)])
def test_the_byte_account_of_every_file_adds_up(variant: str, unpacked: Unpack) -> None:
    # F62
    for segment in _variant(unpacked, variant):
        position = 0
        for row in _ranges(segment):
            assert row["position"] == position
            position += row["length"]  # type: ignore[operator]
        assert position == segment.path.stat().st_size


@pytest.mark.parametrize("variant", FOUND)
@pytest.mark.parametrize("reader", [by_reference, by_kernels])
def test_damaged_bytes_are_reported_and_whole_batches_are_read(
    variant: str,
    reader: Callable[..., tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]],
    unpacked: Unpack,
) -> None:
    # F75
    sound_files = {
        segment.path.name: segment.path
        for name in ("as-killed", _sound_twin(variant))
        for segment in _variant(unpacked, name)
    }
    for segment in _variant(unpacked, variant):
        sound = sound_files[segment.path.name].read_bytes()
        damaged = segment.path.read_bytes()
        if sound == damaged:
            continue
        expected = expectation(sound, damaged)
        account, rows = reader(damaged, segment.base_offset, segment.next_base_offset)
        reported = [(row[0], row[0] + row[1]) for row in account if row[2] != "none" or row[3]]
        assert is_covered(expected.damaged, reported)
        for span in expected.intact:
            assert not any(overlaps(span, other) for other in reported)
        read = {row[-1] for row in rows}
        assert {start for start, _ in expected.intact} <= read
        if variant != "bitflip-leader-epoch":  # whose records are sound
            assert len(read) == len(expected.intact)


def _sound_twin(variant: str) -> str:
    # Topic e.z is damaged in two variants only; nothing else of it is kept.
    return {
        "compressed-bitflip": "compressed-body-broken-valid-crc",
        "compressed-body-broken-valid-crc": "compressed-bitflip",
    }.get(variant, "as-killed")


def test_the_broker_recovered_just_the_records_before_the_first_fault(unpacked: Unpack) -> None:
    # T4: a broker drops everything behind the damage; kafkalog reads on.
    golden = json.loads((unpacked("unclean.golden") / "recovery.json").read_text())
    recovered = golden["zero-hole"]["consume"]["records"]
    offsets = {
        row[0]
        for segment in _variant(unpacked, "zero-hole")
        for row in by_kernels(
            segment.path.read_bytes(), segment.base_offset, segment.next_base_offset
        )[1]
    }
    assert recovered == 2721
    assert offsets == set(range(2721)) | set(range(2782, 2800))


def test_the_oracle_tells_batches_apart_by_their_lengths() -> None:
    batch = b"\0" * 8 + (20).to_bytes(4, "big") + b"x" * 20
    assert batch_spans(batch * 2) == [(0, 32), (32, 64)]
    assert expectation(batch * 3, batch + b"?" + batch[1:] + batch).damaged == (32, 33)
