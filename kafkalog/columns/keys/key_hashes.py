"""Hashes of keys: SipHash-2-4 with 128 bits, as its authors' reference implementation has it.

Who knows the secret only can make keys with one hash. With a random one, two of n keys have the
same hash with a probability below n² / 2^129: for a billion keys 10^-21.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.jit.compiled import (
    ByteArray,
    IntArray,
    LongArray,
    inlined_kernel,
    kernel,
    long,
)

SECRET_BYTES = 16

# The initial state: "somepseudorandomlygeneratedbytes".
_STATE_0 = long(0x736F6D6570736575)
_STATE_1 = long(0x646F72616E646F6D)
_STATE_2 = long(0x6C7967656E657261)
_STATE_3 = long(0x7465646279746573)
_WORD = 8


def secret_words(secret: bytes) -> LongArray:
    """Return the secret as `hash_keys` takes it. It has SECRET_BYTES bytes."""
    return np.frombuffer(secret, dtype="<i8").astype(np.int64)


@inlined_kernel
def _rotated(value: int, bits: int) -> int:
    return (value << bits) | ((value >> (64 - bits)) & ((long(1) << bits) - 1))


@inlined_kernel
def _round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = a + b
    c = c + d
    b = _rotated(b, 13) ^ a
    d = _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    c = c + b
    a = a + d
    b = _rotated(b, 17) ^ c
    d = _rotated(d, 21) ^ a
    c = _rotated(c, 32)
    return a, b, c, d


@inlined_kernel
def _word(data: ByteArray, index: int) -> int:
    """Return the little-endian integer in 8 bytes."""
    value = long(0)
    for i in range(8):
        value |= long(data[index + i]) << (8 * i)
    return value


@inlined_kernel
def hash_key(
    data: ByteArray, begin: int, end: int, secret: LongArray, halves: int
) -> tuple[int, int]:
    """Return the two halves of the hash of the key data[begin:end], or the first one and 0."""
    first, second = secret[0], secret[1]
    index, size = begin, end - begin
    # With 128 bits the state begins with another byte, and ends with two other ones.
    a, b = _STATE_0 ^ first, _STATE_1 ^ second ^ 0xEE
    c, d = _STATE_2 ^ first, _STATE_3 ^ second
    for _ in range(size >> 3):
        word = _word(data, index)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        index += _WORD
    word = long(size & 0xFF) << 56
    for place in range(end - index):
        word |= long(data[index + place]) << (8 * place)
    d ^= word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    a ^= word
    c ^= 0xEE
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    half, other = a ^ b ^ c ^ d, long(0)
    if halves > 1:
        b ^= 0xDD
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        other = a ^ b ^ c ^ d
    return half, other


@kernel
def hash_keys(data: ByteArray, ends: IntArray, secret: LongArray, hashes: LongArray) -> None:
    """Put the two halves of the hash of each key into a row of `hashes`, or the first one where it
    has one column. The keys lie one after another in `data`; `ends` has where the first begins and
    where each ends."""
    halves = hashes.shape[1]
    for i in range(len(ends) - 1):
        half, other = hash_key(data, long(ends[i]), long(ends[i + 1]), secret, halves)
        hashes[i, 0] = half
        if halves > 1:
            hashes[i, 1] = other
