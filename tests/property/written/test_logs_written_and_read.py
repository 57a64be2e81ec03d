"""Any batches, appended by any settings, are read again from any offset, whatever indexes say."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.batch_header import read_header
from kafkalog.format.segment_writer import write_segment
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.log_reader import LogReader
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from tests.support.logs.samples import segments


def split(messages: bytes) -> Iterator[bytes]:
    """Each batch, or message of the old formats, by itself."""
    position = 0
    while position < len(messages):
        size = 12 + int.from_bytes(messages[position + 8 : position + 12], "big")
        yield messages[position : position + size]
        position += size


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[bytes], LogSettings]:
    encoded, _ = draw(segments())
    batches = [batch for part in encoded for batch in split(part)]
    # Nothing that a broker would refuse: a producer's transactions are left out.
    batches = [batch for batch in batches if not read_header(batch, 0).is_transactional]
    largest = max(map(len, batches), default=1)
    settings = LogSettings(
        segment_bytes=draw(st.integers(largest, 4 * largest)),
        segment_ms=draw(st.integers(1, 2**40)),
        segment_index_bytes=draw(st.integers(24, 200)),
        index_interval_bytes=draw(st.integers(0, 300)),
        flush_messages=draw(st.integers(1, 10)),
    )
    return batches, settings


@contextmanager
def written(batches: list[bytes], settings: LogSettings) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "orders-0"
        with LogWriter(str(directory), settings, now_ms=lambda: 0, flush=lambda _: None) as log:
            for batch in batches:
                log.append(batch)
                assert log.next_offset - log.recovery_point < settings.flush_messages
        yield directory


@given(logs())
def test_each_file_is_the_segment_of_its_batches(log: tuple[list[bytes], LogSettings]) -> None:
    # F102, F149 to F151, F158.
    batches, settings = log
    with written(batches, settings) as directory:
        joined = b""
        for path in sorted(directory.glob("*.log")):
            data = path.read_bytes()
            assert len(data) <= settings.segment_bytes
            files = write_segment(
                list(split(data)),
                int(path.stem),
                index_interval_bytes=settings.index_interval_bytes,
            )
            for name, content in files.by_name.items():
                assert (directory / name).read_bytes() == content
            joined += data
    assert joined == b"".join(batches)


@given(logs(), st.binary(max_size=100), st.integers(0, 600))
def test_from_any_offset_on_the_same_is_read_whatever_the_index_says(
    log: tuple[list[bytes], LogSettings], index: bytes, max_bytes: int
) -> None:
    # F140 to F145.
    batches, settings = log
    with written(batches, settings) as directory:
        (listed,) = find_partitions([str(directory)])
        reader = LogReader(listed)
        ends = [read_header(batch, 0).last_offset + 1 for batch in batches]
        assert reader.end_offset() == (ends[-1] if ends else 0)
        before = [list(reader.chunks(offset, max_bytes)) for offset in (0, *ends)]
        for path in directory.glob("*.index"):
            path.write_bytes(index)
        after = [list(reader.chunks(offset, max_bytes)) for offset in (0, *ends)]
    assert before == after
    for number, chunks in enumerate(before):
        assert [batch for chunk in chunks for batch in chunk.batches()] == batches[number:]
        for chunk in chunks:
            assert len(chunk.data) <= max_bytes or len(list(chunk.batches())) == 1
