"""The fast reader against the plain one, on all real files, damaged ones included."""

import pytest

from tests.support.golden.fixture_sets import CONSUMERS, unique_segments
from tests.support.logs.both_readers import by_kernels, by_reference
from tests.support.repository import Unpack


@pytest.mark.parametrize("name", [*CONSUMERS, "unclean"])
def test_both_readers_give_the_same_rows_and_faults(name: str, unpacked: Unpack) -> None:
    for segment in unique_segments(unpacked(f"{name}.logs")):
        data = segment.path.read_bytes()
        place = (segment.base_offset, segment.next_base_offset)
        for options in ({}, {"check_crcs": False}, {"max_batch_bytes": 3000}):
            expected = by_reference(data, *place, **options)
            for in_pieces in (False, True):
                found = by_kernels(data, *place, in_pieces=in_pieces, **options)
                assert found == expected, (segment.path, options, in_pieces)
