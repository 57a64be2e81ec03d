"""F23: text that is not UTF-8, as Java's decoder gives it.

What is expected was printed by a JVM 17: new String(bytes, UTF_8).
"""

import pytest

from kafkalog.wire.java_text import decoded


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"name", "name"),
        ("größe €".encode(), "größe €"),
        (b"\xff", "\ufffd"),
        (b"a\x80b", "a\ufffdb"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xbf\xbf", "\ufffd"),
        (b"x\xed\xa0\x80\xed\xb0\x80y", "x\ufffd\ufffdy"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        (b"\xed", "\ufffd"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xed\xa0A", "\ufffdA"),
        (b"\xed\xff", "\ufffd\ufffd"),
    ],
)
def test_text_is_what_java_makes_of_it(data: bytes, text: str) -> None:
    assert decoded(data) == text
