"""Whatever a payload holds once it is decompressed: both readers agree, under right checksums."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import with_checksum, write_batch
from kafkalog.wire.compression import CompressionType, compress
from tests.property.test_any_bytes import check
from tests.samples import LEGACY_CODECS, batch, message_sets, records_v2


@st.composite
def forged(draw: st.DrawFn, sound: bytes) -> bytes:
    """The bytes with a flipped bit, or a stretch replaced, or an end cut off, or as they are."""
    start = draw(st.integers(0, len(sound)))
    end = draw(st.integers(start, len(sound)))
    kind = draw(st.sampled_from(("flipped", "replaced", "cut", "sound")))
    if kind == "flipped" and start < len(sound):
        changed = bytes((sound[start] ^ 1 << draw(st.integers(0, 7)),))
        return sound[:start] + changed + sound[start + 1 :]
    if kind == "replaced":
        return sound[:start] + draw(st.binary(max_size=12)) + sound[end:]
    return sound[:start] if kind == "cut" else sound


@st.composite
def forged_wrappers(draw: st.DrawFn) -> bytes:
    """A compressed message around messages of both formats, forged; any offset, any attributes."""
    inner = b"".join(
        draw(message_sets(draw(st.integers(0, 12)), magic))[0]
        for magic in draw(st.lists(st.sampled_from((0, 1)), max_size=3))
    )
    magic = draw(st.sampled_from((0, 1)))
    codec = draw(st.sampled_from(LEGACY_CODECS[1:]))
    return write_old_message(
        draw(st.integers(3, 20) | st.just(0)),
        magic,
        None,
        compress(codec, magic, draw(forged(inner))),
        timestamp_ms=draw(st.sampled_from((-1, 0, 2**40))),
        attributes=codec | draw(st.sampled_from((0, 8))),
    )


@given(forged_wrappers(), st.booleans())
def test_messages_inside_a_compressed_one(wrapper: bytes, follows: bool) -> None:
    # F43 to F48; T20 to T23
    check((batch(0) if follows else b"") + wrapper + batch(21))


@given(st.data(), st.sampled_from([codec for codec in CompressionType if codec]))
def test_records_inside_a_compressed_batch(data: st.DataObject, codec: CompressionType) -> None:
    # F25 to F27; T13
    sound = write_batch(data.draw(records_v2(3)))
    payload = compress(codec, 2, data.draw(forged(sound[61:])))
    header = bytearray(sound[:61])
    header[8:12] = struct.pack(">i", 49 + len(payload))
    header[22] = codec
    check(batch(0) + with_checksum(bytes(header) + payload) + batch(100))
