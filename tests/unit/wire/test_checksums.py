"""F11 and F40: the checksums, by the check values of their catalogues."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.wire.checksums import CHUNK, RangeChecksum, crc32, crc32c

DATA = bytes(range(256)) * 1024


def test_crc_32c_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_the_library_comes_without_what_its_package_imports() -> None:
    program = (
        "import sys; from kafkalog.wire.checksums import crc32c\n"
        "print(sorted({'argparse', 'email', 'importlib.metadata'} & set(sys.modules)))\n"
        "import crc32c as package; print(crc32c(b'kafka', 5) == package.crc32c(b'kafka', 5))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[]\nTrue\n", "")


def test_crc_32_is_that_of_zlib() -> None:
    assert crc32(b"123456789") == 0xCBF43926


@pytest.mark.parametrize("castagnoli", [False, True])
@given(st.integers(0, len(DATA)), st.integers(0, len(DATA)))
def test_the_checksum_of_any_range_is_that_of_its_bytes(
    castagnoli: bool, first: int, second: int
) -> None:
    start, end = sorted((first, second))
    ranges = RangeChecksum(
        lambda position, size: DATA[position : position + size], 0, castagnoli=castagnoli
    )
    function = crc32c if castagnoli else crc32
    assert ranges.of(start, end) == function(DATA[start:end])


def test_many_long_ranges_cost_one_pass_over_the_data() -> None:
    read = 0

    def counted(position: int, size: int) -> bytes:
        nonlocal read
        read += size
        return DATA[position : position + size]

    ranges = RangeChecksum(counted, 0, castagnoli=True)
    for start in range(100):
        ranges.of(start, len(DATA))
    assert read < len(DATA) + 100 * 2 * CHUNK
