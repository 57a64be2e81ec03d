"""That the fixtures hold what different producers write: each compresses in its own way.

kafka-python's zstd frames tell their content size, Java's do not; a reader tested on the former
alone fails on the latter. Looked up in the bytes, without kafkalog.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.golden.fixture_sets import unique_segments
from tests.support.logs.damage_oracle import batch_spans
from tests.support.repository import Unpack

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL = b"\x82SNAPPY\0"


def payloads(logs: Path) -> dict[int, list[bytes]]:
    """The compressed payloads of all batches v2 with records, by codec."""
    found: dict[int, list[bytes]] = defaultdict(list)
    for segment in unique_segments(logs):
        data = segment.path.read_bytes()
        for start, end in batch_spans(data):
            if data[start + 16] == 2 and end - start > 61:
                found[data[start + 22] & 7].append(data[start + 61 : end])
    return found


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_payloads_of_java_librdkafka_and_python_producers_are_there(
    name: str, unpacked: Unpack
) -> None:
    # F50, F52 to F54; T25, T26, T30
    found = payloads(unpacked(f"{name}.logs"))
    # RFC 8878: bits 6 and 7 and bit 5 of the frame header descriptor say whether there is a size.
    sized = {bool(payload[4] & 0b11100000) for payload in found[ZSTD]}
    assert sized == {True, False}
    # RFC 1952: the operating system is unknown to Java, Unix for zlib; Python notes the time.
    assert {payload[9] for payload in found[GZIP]} == {0xFF, 3}
    assert {any(payload[4:8]) for payload in found[GZIP]} == {True, False}
    # Java frames snappy's blocks, librdkafka does not.
    assert {payload.startswith(XERIAL) for payload in found[SNAPPY]} == {True, False}
    # LZ4 frame format: bit 3 of the flags is the content size, Java's frames have none.
    assert {bool(payload[4] & 0b1000) for payload in found[LZ4]} == {True, False}
