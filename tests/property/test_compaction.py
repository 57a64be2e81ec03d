"""Compaction changes nothing that a reader of committed state can see."""

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.storage.cleaning.compaction import (
    CleaningRound,
    SourceBatch,
    cleaned_batches,
    last_offsets,
)
from kafkalog.storage.cleaning.compaction_check import CleanedPartCheck, PlacedBatch
from kafkalog.storage.cleaning.log_transactions import log_transactions
from tests.support.logs.compactable_logs import HOUR_MS, committed_state, compactable_log

_NOW_MS = 1_700_000_000_000

seeds = st.integers(0, 2**32)


def _last_offsets_of(batches: list[bytes]) -> list[int]:
    return [read_header(batch, 0).last_offset for batch in batches]


def compacted(batches: list[bytes], share: float, now_ms: int = _NOW_MS) -> list[bytes]:
    """The log with a share of it cleaned, as far as its transactions have ended."""
    transactions = log_transactions(batches)
    ends = [offset + 1 for offset in _last_offsets_of(batches)]
    stable = transactions.first_open_offset
    stable = ends[-1] if stable is None else stable
    dirty = [end for end in ends if end <= stable]
    cleaning = CleaningRound(
        first_dirty_offset=0,
        first_uncleanable_offset=dirty[int(share * (len(dirty) - 1))] if dirty else 0,
        high_watermark=ends[-1],
        now_ms=now_ms,
        delete_retention_ms=HOUR_MS,
        producers=transactions.producers,
        aborted=transactions.aborted,
    )
    sources = [SourceBatch(batch, 1) for batch in batches]
    cleaned = cleaned_batches(sources, last_offsets(sources, cleaning), cleaning)
    return [each.cleaned for each in cleaned if each.cleaned is not None]


@given(seeds, st.floats(0, 1))
def test_the_committed_state_is_the_same_before_and_after(seed: int, share: float) -> None:
    # F242 to F245.
    batches = compactable_log(seed, _NOW_MS).batches
    assert committed_state(compacted(batches, share)) == committed_state(batches)


@given(seeds, st.floats(0, 1), st.floats(0, 1), st.integers(0, 3 * HOUR_MS))
def test_so_it_is_after_further_rounds(
    seed: int, share: float, next_share: float, later_ms: int
) -> None:
    # F245, F249: with tombstones and markers gone as well.
    batches = compactable_log(seed, _NOW_MS).batches
    again = compacted(compacted(batches, share), next_share, _NOW_MS + later_ms)
    assert committed_state(again) == committed_state(batches)


@given(seeds)
def test_offsets_keep_their_order_and_the_log_its_end(seed: int) -> None:
    # F247, F248; T6: the next offset comes from the header.
    batches = compactable_log(seed, _NOW_MS).batches
    left = compacted(batches, 1.0)
    offsets = [record.offset for batch in left for record in read_batch(batch, 0)]
    assert offsets == sorted(set(offsets))
    assert set(offsets) <= {each.offset for batch in batches for each in read_batch(batch, 0)}
    ends = _last_offsets_of(left)
    assert ends == sorted(ends) and ends[-1:] == _last_offsets_of(batches)[-1:]


@given(seeds, st.floats(0, 1))
def test_the_last_batch_of_each_producer_is_known_as_before(seed: int, share: float) -> None:
    # F248: the sequence numbers that a broker goes by survive cleaning. An emptied marker tells it
    # nothing of an epoch any more.
    batches = compactable_log(seed, _NOW_MS).batches
    after = log_transactions(compacted(batches, share)).producers
    for producer, last in log_transactions(batches).producers.items():
        if last.last_data_offset is not None:
            assert after[producer] == last


@given(seeds)
def test_what_compaction_leaves_breaks_no_promise(seed: int) -> None:
    # F255 to F257, of what was compacted up to its end.
    log = compactable_log(seed, _NOW_MS)
    log.end_transactions()
    left = compacted(log.batches, 1.0)
    check = CleanedPartCheck(log.next_offset, log_transactions(left), _NOW_MS)
    assert not list(check.findings(PlacedBatch(batch, "file", 0) for batch in left))


@given(seeds)
def test_a_record_written_back_is_found(seed: int) -> None:
    # F255: the log as it was, called cleaned, has duplicates or worse.
    log = compactable_log(seed, _NOW_MS)
    log.end_transactions()
    check = CleanedPartCheck(log.next_offset, log_transactions(log.batches), _NOW_MS)
    kinds = {each.kind for each in check.findings(PlacedBatch(b, "file", 0) for b in log.batches)}
    assert "duplicate_key" in kinds
