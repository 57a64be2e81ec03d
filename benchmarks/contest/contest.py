"""All that is measured with one input: who takes part, on what share, and that all do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from benchmarks.contest import peers, readers
from benchmarks.contest.floor import floor
from benchmarks.contest.same_work import check_headers, check_same_rows, data_bytes
from benchmarks.inputs.segments import Segment, read_segment
from benchmarks.inputs.wanted import Input
from benchmarks.measuring.rounds import Contender, measure

FLOOR = "floor: checksums, decompression, one copy"
FULL = "kafkalog: key, value, offset, timestamp"
FULL_FILE = "the same from the file"
FULL_UNCHECKED = "the same without checksums"
NARROW = "kafkalog: offset, timestamp"
NARROW_UNCHECKED = "kafkalog: offset, timestamp, no checksums"
HEADERS = "kafkalog: batch headers"
HEADERS_FILE = "kafkalog: batch headers from the file"
AIOKAFKA = "aiokafka (compiled parser)"
AIOKAFKA_UNCHECKED = "aiokafka without checksums"
KAFKA_PYTHON = "kafka-python"

# How to find each, and which part of the input it gets.
_PEERS: dict[str, tuple[Callable[[str], peers.Reader], int]] = {
    AIOKAFKA: (peers.aiokafka, 8),
    KAFKA_PYTHON: (peers.kafka_python, 32),
}
_UNCHECKED_PEERS: dict[str, tuple[Callable[[str], peers.Reader], int]] = {
    AIOKAFKA_UNCHECKED: (partial(peers.aiokafka, check_crcs=False), 8)
}


@dataclass(frozen=True, slots=True)
class Contest:
    """One input and what came out."""

    input: Input
    segment: Segment
    data_bytes: int  # of keys and values
    contenders: dict[str, Contender]
    not_installed: dict[str, str]
    busy_share: float


def hold(item: Input, rounds: int) -> Contest:
    """Check that all do the same work, then time them in turn."""
    segment = read_segment(item.path)
    contenders = [_floor(segment), *_full(item, segment)]
    found_peers = dict(_PEERS)
    if item.codec == "none":
        contenders += _partial(item, segment)
        found_peers |= _UNCHECKED_PEERS
    not_installed: dict[str, str] = {}
    for name, (find, part) in found_peers.items():
        try:
            contenders.append(_peer(name, find(item.codec), segment.leading(1 / part), segment))
        except peers.NotInstalledError as error:
            not_installed[name] = f"not installed: {error}"
    busy_share = measure(contenders, rounds)
    return Contest(
        item,
        segment,
        data_bytes(readers.records(segment)),
        {contender.name: contender for contender in contenders},
        not_installed,
        busy_share,
    )


def _floor(segment: Segment) -> Contender:
    return Contender(FLOOR, lambda: floor(segment), readers.payload_bytes(segment))


def _full(item: Input, segment: Segment) -> list[Contender]:
    return [
        _counted(FULL, segment.records, lambda: readers.records(segment)),
        _counted(FULL_FILE, segment.records, lambda: readers.records_of_file(item.path)),
    ]


def _partial(item: Input, segment: Segment) -> list[Contender]:
    """Less than whole records; and these without checksums, to compare with."""
    check_same_rows(NARROW, readers.records(segment), readers.records(segment, readers.NARROW))
    check_headers(HEADERS, segment, list(readers.headers(segment)))
    check_headers(HEADERS_FILE, segment, list(readers.headers_of_file(item.path)))
    records, batches = segment.records, len(segment.batches)
    unchecked = partial(readers.records, segment, check_crcs=False)
    narrow = readers.NARROW
    return [
        _counted(FULL_UNCHECKED, records, unchecked),
        _counted(NARROW, records, lambda: readers.records(segment, narrow)),
        _counted(NARROW_UNCHECKED, records, lambda: unchecked(narrow)),
        _counted(HEADERS, batches, lambda: readers.headers(segment)),
        _counted(HEADERS_FILE, batches, lambda: readers.headers_of_file(item.path)),
    ]


def _peer(name: str, read: peers.Reader, part: Segment, whole: Segment) -> Contender:
    data = part.data.tobytes()
    check_same_rows(name, readers.records(part), read(data))
    return _counted(name, part.records, lambda: read(data), part.records / whole.records)


def _counted(
    name: str, expected: int, read: Callable[[], Iterable[pa.RecordBatch]], share: float = 1.0
) -> Contender:
    return Contender(name, lambda: sum(batch.num_rows for batch in read()), expected, share)
