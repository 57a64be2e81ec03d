"""What people see: tables in three formats, colour on a terminal only; sizes and times in words."""

import io
from collections.abc import Callable, Sequence

import click
import pytest
from click.testing import CliRunner

from kafkalog.command_line.terminal import is_coloured, table_format_option, write_table
from kafkalog.words import given_time_ms, size_text, time_ms, time_text

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


TOPIC = "a" * 100 + "b" * 149
WIDE = ("topic", "size", "directory", "codec")
WIDE_ROWS = [(TOPIC, 1, "/" + "d" * 60, "zstd"), ("c", 22, "/", "none")]


def on_terminal(
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    *arguments: str,
    names: Sequence[str] = WIDE,
    rows: Sequence[Sequence[object]] = WIDE_ROWS,
) -> list[str]:
    """The lines of a table on a terminal of that width."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()

    @click.command()
    @table_format_option
    def table(table_format: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            write_table(names, rows, table_format)

    assert CliRunner().invoke(table, arguments).exit_code == 0
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (400, f"{TOPIC}     1  /{'d' * 60}  zstd"),
        (80, f"{'a' * 32}     1  /{'d' * 15}…{'d' * 15}  zstd"),
        (52, f"{'a' * 18}     1  /{'d' * 8}…{'d' * 8}  zstd"),
        (44, f"{'a' * 18}     1  /{'d' * 8}…{'d' * 8}"),
        (20, "a" * 20),
    ],
)
def test_a_table_fits_the_terminal(
    columns: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = on_terminal(monkeypatch, columns)
    assert max(map(len, lines)) <= columns
    assert lines[1].split() == shown.split()
    # F1426: what a row is about goes on in the next line.
    assert "".join(line.split()[0] for line in lines[1:-1]) == TOPIC
    assert lines[-1].split()[0] == "c"


ANSWER = (
    *("topic", "partition", "outcome", "producer_id", "producer_epoch", "first_timestamp"),
    "waiting_groups",
)
ANSWER_ROW = (
    "orders",
    0,
    "open",
    1030,
    0,
    "2026-11-21T07:41:51.166Z",
    "billing-service-of-the-shop",
)
FAULT = ("file", "position", "length", "severity", "kind", "detail")
SEGMENT = "/var/lib/kafka/data-1/shop.codec-zstd-0/00000000000000412907.log"
FAULT_ROW = (SEGMENT, 23728, 1558, "error", "checksum", "stored 0x65cb278d, computed 0x110595b1")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (50, ["TOPIC", "PARTITION", "OUTCOME", "WAITING-GROUPS"]),
        (80, ["TOPIC", "PARTITION", "OUTCOME", "PRODUCER-ID", "WAITING-GROUPS"]),
        (120, [name.upper().replace("_", "-") for name in ANSWER]),
    ],
)
def test_the_columns_with_the_answer_are_the_last_to_go(
    columns: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = on_terminal(monkeypatch, columns, names=ANSWER, rows=[ANSWER_ROW])
    assert lines[0].split() == expected
    if columns > 50:
        assert lines[1].endswith("billing-service-of-the-shop")


# What each question is about, of the columns that its command prints.
TIME = "2026-11-21T07:41:51.166Z"
ANSWERS = {
    "ls --from-time": (
        {
            "topic": "shop.orders",
            "partitions": 3,
            "bytes": 1000,
            "records": 10,
            "batches": 9,
            "records_per_batch": 1.1,
            "peak_bytes_per_second": 900,
            "peak_ms": TIME,
            "last_timestamp_ms": TIME,
            "clock": "producer",
            "last_producer_id": 1007,
            "last_producer_epoch": 0,
            "transactional_id": "tx-a",
        },
        {"topic", "bytes", "last_timestamp_ms", "last_producer_id"},
    ),
    "groups --history": (
        {
            "topic": "shop.orders",
            "partition": 0,
            "at_ms": TIME,
            "committed_offset": 315,
            "finding": "lost",
            "event": "commit",
            "jump": 215,
            "records_between": 25,
        },
        {"topic", "partition", "at_ms", "committed_offset", "finding"},
    ),
    "replicas": (
        {
            "topic": "__consumer_offsets",
            "partition": 0,
            "broker_id": 1,
            "can_lead": True,
            "lost_records": 73,
            "lost_transactions": 25,
            "lost_commits": 16,
            "moved_groups": 0,
            "is_elected": True,
            "keep_stopped": "none",
            "diverges_at": None,
        },
        {"topic", "partition", "broker_id", "can_lead", "lost_records", "is_elected"},
    ),
    "groups --resume": (
        {
            "group": "behind",
            "topic": "orders",
            "partition": 0,
            "resumes_at": 720,
            "reason": "below_log_start",
            "current_offset": 50,
            "records_again": 0,
            "records_skipped": 670,
            "to_read": 0,
        },
        {"group", "topic", "resumes_at", "reason", "records_skipped"},
    ),
    "metadata --diff": (
        {
            "offset": 419,
            "timestamp_ms": TIME,
            "record_name": "PartitionChangeRecord",
            "kind": "partition",
            "name": "shop.raw-0",
            "cause": "broker 1 was unfenced",
            "change": "leader -1 to 1, leader_epoch 1 to 2, partition_epoch 1 to 2, isr none to 1",
        },
        {"offset", "timestamp_ms", "name", "cause", "change"},
    ),
    "find --largest": (
        {
            "topic": "shop.codec-zstd",
            "partition": 0,
            "offset": 2109,
            "timestamp_ms": TIME,
            "value_size": 307166,
            "visibility": "visible",
            "position": 70584,
            "record_size": 307174,
            "file": "/data/shop.codec-zstd-0/00000000000000000000.log",
        },
        {"topic", "partition", "offset", "record_size"},
    ),
    "streams": (
        {
            "application_id": "word-count",
            "topic": "counts-repartition",
            "partition": 0,
            "committed_offset": 60,
            "stream_time_ms": TIME,
            "committed_ms": TIME,
        },
        {"application_id", "topic", "partition", "stream_time_ms"},
    ),
}


@pytest.mark.parametrize("command", ANSWERS)
def test_a_narrow_terminal_shows_what_the_question_is_about(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, needed = ANSWERS[command]
    lines = on_terminal(monkeypatch, 80, names=tuple(row), rows=[tuple(row.values())])
    assert len(lines[0]) <= 80
    assert {name.lower().replace("-", "_") for name in lines[0].split()} >= needed


RECOVERY = (
    *("topic", "partition", "broker_starts", "log_end_offset", "lost_records"),
    *("salvageable_records", "missing_offsets", "cut_position", "start_error"),
)
RECOVERY_ROW = ("orders", 1, False, None, 0, 0, None, None, "leader-epoch-checkpoint: version 7")
MATCH = ("topic", "partition", "offset", "timestamp_ms", "value_size", "visibility", "position")
MATCH_ROW = ("orders", 0, 10, "2025-12-31T23:59:41.000Z", "tombstone", "visible", 144)
STATUS = ("topic", "partition", "status", "next_offset", "log_start_offset", "waiting_offsets")
STATUS_ROW = ("orders-of-the-shop-abroad", 0, "future_time", 12, 0, 29)


@pytest.mark.parametrize(
    ("names", "row", "stays"),
    [
        (RECOVERY, RECOVERY_ROW, "START-ERROR"),
        (MATCH, MATCH_ROW, "VALUE-SIZE"),
        (STATUS, STATUS_ROW, "WAITING-OFFSETS"),
    ],
)
def test_why_a_broker_does_not_start_what_is_deleted_and_what_waits_are_answers(
    names: Sequence[str], row: Sequence[object], stays: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, *_ = on_terminal(monkeypatch, 80, names=names, rows=[row])
    assert stays in header.split()
    assert len(header.split()) < len(names)


@pytest.mark.parametrize(
    ("columns", "file"),
    [
        (80, "…/shop.codec-zstd-0/…412907.log"),
        (130, "…/shop.codec-zstd-0/00000000000000412907.log"),
        (200, SEGMENT),
    ],
)
def test_a_path_keeps_its_directory_and_its_name(
    columns: int, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, line, *_ = on_terminal(monkeypatch, columns, names=FAULT, rows=[FAULT_ROW])
    assert {"FILE", "KIND", "DETAIL"} <= set(header.split())
    assert line.split()[0] == file


def test_a_wide_table_is_whole_on_a_terminal_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_terminal(monkeypatch, 20, "--wide")[1].split()[0] == TOPIC


def test_columns_are_chosen_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 80, "--columns", "CODEC,size")
    assert [line.split() for line in lines] == [["CODEC", "SIZE"], ["zstd", "1"], ["none", "22"]]
    with pytest.raises(AssertionError):
        on_terminal(monkeypatch, 80, "--columns", "colour")


def test_severities_have_colours_and_other_columns_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    write_table(("topic", "severity"), [("error", "warning"), ("warning", "error")], "text")
    _, *lines = out.getvalue().splitlines()
    assert lines == ["error    \x1b[33mwarning \x1b[0m", "warning  \x1b[31merror   \x1b[0m"]


def test_a_table_in_a_pipe_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(WIDE, WIDE_ROWS, "text")
    assert capsys.readouterr().out.splitlines()[1].split()[0] == TOPIC


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-21T12:30:00.000Z"),
        ("-24h", "2026-11-20T12:30:00.000Z"),
        ("-7d", "2026-11-14T12:30:00.000Z"),
        ("-30m", "2026-11-21T12:00:00.000Z"),
        ("today", "2026-11-21T00:00:00.000Z"),
        ("Yesterday", "2026-11-20T00:00:00.000Z"),
        ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00.000Z"),
    ],
)
def test_times_relative_to_the_present(text: str, expected: str) -> None:
    now_ms = time_ms("2026-11-21T12:30:00Z")
    assert time_text(given_time_ms(text, pytest.fail, now_ms)) == expected


@pytest.mark.parametrize("text", ["-24", "24h", "-", "--24h", "-1y", "tomorrow"])
def test_other_relative_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        given_time_ms(text, pytest.fail, 10**12)


def test_a_table_of_thousands_of_rows_has_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[f"topic-{number}", number, None] for number in range(2001)]
    write_table(["topic", "records", "at_ms"], rows, "text")
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["TOPIC", "RECORDS", "AT-MS"]
    assert [line.split() for line in lines] == [
        [f"topic-{number}", str(number), "-"] for number in range(2001)
    ]
