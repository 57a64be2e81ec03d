"""Payloads with flipped, replaced or missing bytes, under right checksums."""

from hypothesis import strategies as st

from kafkalog.format.message_set import write_old_message
from kafkalog.wire.compression import compress
from tests.support.logs.samples import LEGACY_CODECS, message_sets


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
