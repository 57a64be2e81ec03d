"""Any bytes as index files give findings, few of them, and never an error. F131, F136."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.inspection.indexes.side_file_check import (
    leader_epoch_findings,
    snapshot_findings,
    topic_id_findings,
)
from tests.support.logs.checked_indexes import checked
from tests.support.logs.damage_oracle import batch_spans
from tests.support.logs.samples import joined, segments

files = st.none() | st.binary(max_size=200) | st.integers(0, 200).map(bytes)
Segment = tuple[list[bytes], list[Record]]


@given(
    segments(),
    files,
    files,
    files,
    st.sampled_from((0, 3, 2**40, LARGEST_OFFSET - 5, LARGEST_OFFSET)),
    st.booleans(),
    st.binary(max_size=80),
)
def test_any_bytes_beside_any_log(
    segment: Segment,
    index: bytes | None,
    timeindex: bytes | None,
    txnindex: bytes | None,
    base_offset: int,
    is_active: bool,
    tail: bytes,
) -> None:
    found = checked(
        joined(segment[0]) + tail,
        base_offset,
        index=index,
        timeindex=timeindex,
        txnindex=txnindex,
        is_active=is_active,
    )
    assert max(Counter((finding.file, finding.kind) for finding in found).values(), default=1) == 1
    for finding in found:
        assert finding.detail
        assert (finding.entry is None) == (finding.entries == 0)


@given(segments(), st.integers(1, 300), st.integers(0, 100))
def test_what_is_written_is_sound(segment: Segment, interval: int, places: int) -> None:
    # F100 to F102, F130, F132.
    # A message set is batches of one message each, as brokers take it.
    log = joined(segment[0])
    batches = [log[start:end] for start, end in batch_spans(log)]
    written = write_segment(batches, 0, index_interval_bytes=interval)
    index, timeindex = written.index + bytes(8 * places), written.timeindex + bytes(12 * places)
    assert checked(written.log, 0, index=index, timeindex=timeindex) == []
    found = checked(
        written.log, 0, index=written.index, timeindex=written.timeindex, is_active=False
    )
    assert found == []


@given(st.binary(max_size=200), st.text(max_size=100))
def test_any_bytes_as_snapshot_epochs_and_topic_id(data: bytes, text: str) -> None:
    # F135.
    assert len(list(snapshot_findings("00000000000000000007.snapshot", data))) <= 1
    assert len(list(leader_epoch_findings(text))) <= 1
    assert len(list(topic_id_findings(text))) <= 1
