"""Whatever a payload holds once it is decompressed: both readers agree, under right checksums."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import with_checksum, write_batch
from kafkalog.wire.compression import CompressionType, compress
from tests.support.logs.forged_payloads import forged, forged_wrappers
from tests.support.logs.reader_agreement import assert_readers_agree
from tests.support.logs.samples import batch, records_v2


@given(forged_wrappers(), st.booleans())
def test_messages_inside_a_compressed_one(wrapper: bytes, follows: bool) -> None:
    # F43 to F48; T20 to T23
    assert_readers_agree((batch(0) if follows else b"") + wrapper + batch(21))


@given(st.data(), st.sampled_from([codec for codec in CompressionType if codec]))
def test_records_inside_a_compressed_batch(data: st.DataObject, codec: CompressionType) -> None:
    # F25 to F27; T13
    sound = write_batch(data.draw(records_v2(3)))
    payload = compress(codec, 2, data.draw(forged(sound[61:])))
    header = bytearray(sound[:61])
    header[8:12] = struct.pack(">i", 49 + len(payload))
    header[22] = codec
    assert_readers_agree(batch(0) + with_checksum(bytes(header) + payload) + batch(100))
