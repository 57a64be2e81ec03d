"""What records are known by, as files and options give it. Rules: docs/erasure.md F1105, F1106."""

import hashlib
import hmac

import pytest

from kafkalog.errors import OptionError
from kafkalog.inspection.erasure.identifiers import Identifier, Kind, of_lines, of_option


def test_a_line_is_a_key_or_json() -> None:
    # F1105.
    lines = [
        b"cust-17\n",
        b"\n",
        b"hex:00ff\r\n",
        b'{"header": "user", "value": "cust-17"}\n',
        b'{"value-path": "$.customer.id", "value": "17"}\n',
        b'{"text": "base64:QUJD"}\n',
        b'{"key": "{odd"}',
        b"cust-17",
    ]
    assert of_lines("--identifiers", lines) == [
        Identifier(Kind.KEY, b"cust-17"),
        Identifier(Kind.KEY, b"\0\xff"),
        Identifier(Kind.HEADER, b"cust-17", "user"),
        Identifier(Kind.VALUE_PATH, b"17", "$.customer.id"),
        Identifier(Kind.TEXT, b"ABC"),
        Identifier(Kind.KEY, b"{odd"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"hex:0",
        b"\xff",
        b'{"key": "a", "text": "b"}',
        b'{"header": "secret"}',
        b'{"text": ""}',
        b'{"value-path": "customer", "value": "secret"}',
        b'{"key": 7}',
        b"{not json",
    ],
)
def test_what_cannot_be_read_is_refused_without_showing_it(line: bytes) -> None:
    # F1105: a line is personal, and errors go to logs.
    with pytest.raises(OptionError) as caught:
        of_lines("--identifiers", [b"cust-1", line])
    assert "line 2" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_without_a_line_is_refused() -> None:
    with pytest.raises(OptionError, match="at least one line"):
        of_lines("--identifiers", [b"\n"])


def test_options_give_a_name_and_a_value() -> None:
    header = of_option("--header", Kind.HEADER, "user=a=b")
    assert header == Identifier(Kind.HEADER, b"a=b", "user")
    with pytest.raises(OptionError, match="a name and a value"):
        of_option("--header", Kind.HEADER, "user")


def test_an_hmac_is_that_of_the_standard_over_kind_name_and_value() -> None:
    # F1106.
    identifier = Identifier(Kind.HEADER, b"cust-17", "user")
    message = b"header\0user\0cust-17"
    assert identifier.hmac(b"k" * 16) == hmac.new(b"k" * 16, message, hashlib.sha256).hexdigest()
