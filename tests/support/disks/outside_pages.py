"""What a sound segment has outside of some pages, by its lengths alone."""

from collections.abc import Iterator
from pathlib import Path

from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.storage.files.read_around import PAGE_BYTES
from tests.support.logs.damage_oracle import Span, batch_spans, overlaps


def batches_outside(path: Path, *pages: int) -> Iterator[Span]:
    """The batches of a sound segment without a byte in these pages."""
    hidden = [(page * PAGE_BYTES, (page + 1) * PAGE_BYTES) for page in pages]
    for span in batch_spans(path.read_bytes()):
        if not any(overlaps(span, page) for page in hidden):
            yield span


def records_outside(path: Path, *pages: int) -> list[Record]:
    """The records of the same, but for those of control batches."""
    data = path.read_bytes()
    return [
        record
        for start, _ in batches_outside(path, *pages)
        if not read_header(data, start).is_control
        for record in read_batch(data, start, expected_offset=0)
    ]


def offsets_outside(path: Path, *pages: int) -> list[int]:
    """Their offsets."""
    return [record.offset for record in records_outside(path, *pages)]
