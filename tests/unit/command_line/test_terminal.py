"""What people see: tables in three formats, colour on a terminal only; sizes and times in words."""

import io
from collections.abc import Callable

import pytest

from kafkalog.command_line.terminal import is_coloured, write_table
from kafkalog.words import size_text, time_ms, time_text

NAMES = ("topic", "size_bytes", "codec")
ROWS = [("orders", 1536, None), ('a "b", c', 7, "zstd")]


@pytest.mark.parametrize(
    ("table_format", "expected"),
    [
        (
            "text",
            'TOPIC     SIZE-BYTES  CODEC\norders       1.5 KiB  -\na "b", c         7 B  zstd\n',
        ),
        (
            "json",
            '{"topic": "orders", "size_bytes": 1536, "codec": null}\n'
            '{"topic": "a \\"b\\", c", "size_bytes": 7, "codec": "zstd"}\n',
        ),
        ("csv", 'topic,size_bytes,codec\norders,1536,\n"a ""b"", c",7,zstd\n'),
    ],
)
def test_a_table_in_each_format(
    table_format: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(NAMES, ROWS, table_format, texts={"size_bytes": size_text})
    assert capsys.readouterr() == (expected, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_yes_and_no_are_words_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("topic", "is_open"), [("a", True), ("b", False)], "text")
    assert capsys.readouterr().out == "TOPIC  IS-OPEN\na          yes\nb           no\n"


@pytest.mark.parametrize(
    ("stream", "shown"),
    [(Terminal, f"{'a' * 24}…{'b' * 23}"), (io.StringIO, "a" * 100 + "b" * 149)],
)
def test_a_long_topic_loses_its_middle_on_a_terminal_only(
    stream: Callable[[], io.StringIO], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = stream()
    monkeypatch.setattr("sys.stdout", out)
    write_table(("topic", "size"), [("a" * 100 + "b" * 149, 1), ("c", 22)], "text")
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["TOPIC", shown, "c"]


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal, {}, True),
        (io.StringIO, {}, False),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    stream: Callable[[], io.StringIO],
    environment: dict[str, str],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_coloured(stream()) is expected


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (128 * 2**20, "128 MiB"),
        (2**20 - 1, "1.0 MiB"),
        (2**63, "8.0 EiB"),
    ],
)
def test_sizes_in_words(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("given_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**63 - 1, "9223372036854775807"),
        (None, ""),
    ],
)
def test_times_in_words(given_ms: int | None, text: str) -> None:
    assert time_text(given_ms) == text


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20.123+01:00", 1_700_000_000_123),
        ("1970-01-01", 0),
    ],
)
def test_times_that_users_give(text: str, expected_ms: int) -> None:
    assert time_ms(text) == expected_ms


def test_what_is_not_a_time_is_refused_with_what_is() -> None:
    with pytest.raises(ValueError, match=r"'soon' is not a time: milliseconds since 1970, or"):
        time_ms("soon")
