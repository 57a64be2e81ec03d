"""CRC-32C (record batch v2) and CRC-32 (message sets v0 and v1), of bytes and of many ranges.

Rules: docs/format.md F11 and F40.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

from kafkalog.wire import BytesLike

CHUNK = 64 * 1024

# The generator polynomials, bit-reflected as both algorithms process them.
_CRC32C_POLYNOMIAL = 0x82F63B78
_CRC32_POLYNOMIAL = 0xEDB88320

ChecksumFunction = Callable[..., int]


def _library_crc32c() -> ChecksumFunction:
    """Return the function of package crc32c, without the package's other imports: parsers of
    arguments and of package metadata, which take a fifth of a command's start."""
    package = PathFinder.find_spec("crc32c")
    locations = None if package is None else package.submodule_search_locations
    library = PathFinder.find_spec("crc32c._crc32c", locations)
    if library is None or library.loader is None:
        from crc32c import crc32c

        return crc32c
    module = module_from_spec(library)
    library.loader.exec_module(module)
    function: ChecksumFunction = module.crc32c
    return function


# CRC-32C (Castagnoli) and CRC-32 (ISO-HDLC, zlib's) of `data`, continuing from `value` if given.
# The libraries' own functions: for small batches a wrapper would cost more than the call.
crc32c: ChecksumFunction = _library_crc32c()
crc32: ChecksumFunction = zlib.crc32


def _multiply(left: int, right: int, polynomial: int) -> int:
    """Return the product of two polynomials over GF(2), modulo the generator, bit-reflected."""
    product = 0
    for bit in range(31, -1, -1):
        if left >> bit & 1:
            product ^= right
        right = right >> 1 ^ polynomial if right & 1 else right >> 1
    return product


class RangeChecksum:
    """Checksums of many, possibly overlapping ranges of one file in time linear in the file.

    Damaged or hostile bytes can hold any number of headers that each claim a long batch. Taking
    every claimed checksum from scratch would cost the square of the file; instead the checksum
    of every prefix that ends on a chunk border is kept, and the checksum of a range follows from
    those of the two prefixes around it: crc(b) xor crc(a) times x^(8 (b - a)).
    """

    def __init__(
        self, read: Callable[[int, int], BytesLike], start: int, *, castagnoli: bool
    ) -> None:
        """`read(position, size)` gives bytes of the file; ranges begin at `start` or later."""
        self._read = read
        self._start = start
        self._function: ChecksumFunction = crc32c if castagnoli else crc32
        self._polynomial = _CRC32C_POLYNOMIAL if castagnoli else _CRC32_POLYNOMIAL
        self._prefixes = [0]
        self._byte_shifts = [1 << 23]  # x^8, one byte: below the generator's degree

    def of(self, position: int, end: int) -> int:
        """Return the checksum of the bytes [position, end)."""
        if end - position <= CHUNK:
            return self._function(self._read(position, end - position))
        shifted = self._shift(self._prefix(position), end - position)
        return self._prefix(end) ^ shifted

    def _prefix(self, end: int) -> int:
        chunks, rest = divmod(end - self._start, CHUNK)
        while len(self._prefixes) <= chunks:
            position = self._start + (len(self._prefixes) - 1) * CHUNK
            chunk = self._read(position, CHUNK)
            self._prefixes.append(self._function(chunk, self._prefixes[-1]))
        return self._function(self._read(end - rest, rest), self._prefixes[chunks])

    def _shift(self, checksum: int, byte_count: int) -> int:
        power = 0
        while byte_count >> power:
            if power == len(self._byte_shifts):
                last = self._byte_shifts[-1]
                self._byte_shifts.append(_multiply(last, last, self._polynomial))
            if byte_count >> power & 1:
                checksum = _multiply(self._byte_shifts[power], checksum, self._polynomial)
            power += 1
        return checksum
