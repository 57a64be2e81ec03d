"""Whatever pages of a segment cannot be read: both readers give the same account, every batch
outside of them, and no row of any other. Rules: docs/format.md F77 to F79."""

import random
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.storage.files.read_around import PAGE_BYTES
from kafkalog.wire.compression import CompressionType
from tests.support.disks.hidden_pages import FailingFile, with_hidden_pages
from tests.support.logs.both_readers import AccountRow, Row, by_kernels, by_reference
from tests.support.logs.damage_oracle import Span, batch_spans, overlaps
from tests.support.repository import SHOP

_PAGES = 12


def large_segment(seed: int, *, with_old: bool = False, nested: bool = False) -> bytes:
    """Some twelve pages of batches of all sizes; `nested`, some with whole batches in values."""
    randomness = random.Random(seed)
    parts: list[bytes] = []
    offset = 0
    while sum(map(len, parts)) < _PAGES * PAGE_BYTES:
        size = randomness.choice((0, 10, 100, 1000, 3000, 9000))
        value = randomness.randbytes(size)
        if parts and nested and size == 1000:
            value = b"".join(randomness.choices(parts, k=3))
        records = [Record(offset, 1000, 0, b"key", value)]
        if with_old and randomness.random() < 0.5:
            parts.append(write_message_set(records, magic=randomness.choice((0, 1))))
        else:
            records += [
                Record(offset + i, 1000, 0, None, randomness.randbytes(randomness.randint(0, 900)))
                for i in range(1, randomness.randint(1, 4))
            ]
            codec = randomness.choice(list(CompressionType))
            parts.append(write_batch(records, BatchFields(compression=codec)))
        offset += len(records)
    return b"".join(parts)


def hidden_spans(size: int, pages: Collection[int]) -> list[Span]:
    return [(page * PAGE_BYTES, min((page + 1) * PAGE_BYTES, size)) for page in pages]


def check(sound: bytes, account: list[AccountRow], rows: list[Row], pages: Collection[int]) -> None:
    """The account and the rows against what framing says of the file before."""
    hidden = hidden_spans(len(sound), pages)
    batches = batch_spans(sound)
    whole = [span for span in batches if not any(overlaps(span, page) for page in hidden)]
    assert {row[-1] for row in rows} == {start for start, _ in whole}
    assert sum(row[1] for row in account) == len(sound)
    for position, size, fault, *_ in account:
        span = (position, position + size)
        is_hidden = any(overlaps(span, page) for page in hidden)
        assert fault == ("unreadable" if is_hidden else "none"), span


seeds = st.integers(0, 2**32)
pages_of_a_segment = st.sets(st.integers(0, _PAGES + 2), min_size=1, max_size=_PAGES)


@pytest.mark.parametrize("check_crcs", [True, False])
@given(seed=seeds, chosen=pages_of_a_segment, with_old=st.booleans())
def test_every_batch_outside_of_the_pages_is_read_and_none_inside(
    seed: int, chosen: set[int], with_old: bool, check_crcs: bool
) -> None:
    # F77, F78, F79
    sound = large_segment(seed, with_old=with_old)
    pages = [page for page in chosen if page * PAGE_BYTES < len(sound)]
    left, hidden = with_hidden_pages(sound, pages)
    account, rows = by_reference(left, 0, unreadable=hidden, check_crcs=check_crcs)
    check(sound, account, rows, pages)
    by_pieces = by_kernels(FailingFile(sound, pages), 0, check_crcs=check_crcs)
    assert by_pieces == (account, rows)


@given(seed=seeds, first=st.integers(0, _PAGES), count=st.integers(1, 4))
def test_batches_in_values_behind_unreadable_pages_are_none_of_the_log(
    seed: int, first: int, count: int
) -> None:
    # F79
    sound = large_segment(seed, nested=True)
    pages = [page for page in range(first, first + count) if page * PAGE_BYTES < len(sound)]
    left, hidden = with_hidden_pages(sound, pages)
    account, rows = by_reference(left, 0, unreadable=hidden)
    check(sound, account, rows, pages)
    assert by_kernels(FailingFile(sound, pages), 0) == (account, rows)


_REAL = sorted((SHOP).glob("*/*.log"))


@given(path=st.sampled_from(_REAL), chosen=st.sets(st.integers(0, 7), min_size=1))
def test_any_pages_of_an_example_segment(path: Path, chosen: set[int]) -> None:
    # F77, F78, F79
    sound = path.read_bytes()
    pages = [page for page in chosen if page * PAGE_BYTES < len(sound)]
    left, hidden = with_hidden_pages(sound, pages)
    account, rows = by_reference(left, int(path.stem), unreadable=hidden)
    assert by_kernels(FailingFile(sound, pages), int(path.stem)) == (account, rows)
    spans = hidden_spans(len(sound), pages)
    whole = [span for span in batch_spans(sound) if not any(overlaps(span, page) for page in spans)]
    _, all_rows = by_reference(sound, int(path.stem))
    assert rows == [row for row in all_rows if row[-1] in {start for start, _ in whole}]
    for position, size, fault, *_ in account:
        is_hidden = any(overlaps((position, position + size), page) for page in spans)
        assert (fault == "unreadable") == is_hidden
