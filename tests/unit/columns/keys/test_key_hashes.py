"""Hashes of keys, against the reference implementation's own vectors."""

from itertools import accumulate

import numpy as np
import pytest

from kafkalog.columns.keys.key_hashes import SECRET_BYTES, hash_keys, secret_words

# vectors.h of github.com/veorq/SipHash, `vectors_sip128`: of the bytes 0, 1, 2, … of each length,
# with the key 0 to 15.
VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    # As `openssl mac -macopt size:16 SIPHASH` has them: a whole word and a part, and seven of them.
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
    63: "5150d1772f50834a503e069a973fbd7c",
}


def hashes_of(keys: list[bytes], secret: bytes, *, halves: int = 2) -> list[str]:
    data = np.frombuffer(b"".join(keys) or b"\0", dtype=np.uint8)
    ends = np.array([0, *accumulate(map(len, keys))], dtype=np.int32)
    hashes = np.zeros((len(keys), halves), dtype=np.int64)
    hash_keys(data, ends, secret_words(secret), hashes)
    return [row.astype("<i8").tobytes().hex() for row in hashes]


@pytest.mark.parametrize("size", VECTORS)
def test_hashes_are_those_of_the_reference_implementation(size: int) -> None:
    key, secret = bytes(range(size)), bytes(range(SECRET_BYTES))
    assert hashes_of([key], secret) == [VECTORS[size]]
    assert hashes_of([key], secret, halves=1) == [VECTORS[size][:16]]


def test_all_bytes_of_a_key_count_and_those_of_its_neighbours_do_not() -> None:
    secret = bytes(range(SECRET_BYTES))
    keys = [bytes(range(size)) for size in range(40)]
    changed = [key[:-1] + b"\xff" for key in keys[1:]]
    together = hashes_of([*keys, *changed], secret)
    assert together == [hashes_of([key], secret)[0] for key in [*keys, *changed]]
    assert len(set(together)) == len(together)


def test_another_secret_gives_other_hashes() -> None:
    assert hashes_of([b"key"], bytes(SECRET_BYTES)) != hashes_of([b"key"], b"\1" * SECRET_BYTES)
