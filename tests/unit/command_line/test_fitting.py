"""Tables on narrow terminals: nothing that answers is cut. Rule: docs/command-line.md F1426."""

import pytest

from kafkalog.command_line.fitting import Column, fitted, lines_of_cell


@pytest.mark.parametrize("width", [8, 16, 29])
def test_a_text_that_answers_goes_on_in_the_next_line(width: int) -> None:
    text = "leader 3 → 1, isr 1,2,3 → 1,2"
    lines = lines_of_cell("change", text, width)
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines) == text


def test_a_name_that_is_longer_than_its_column_is_whole_too() -> None:
    lines = lines_of_cell("topic", "__consumer_offsets-12", 16)
    assert lines == ["__consumer_offse", "ts-12"]


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("client_id", "a-very-long-client-id", "a-ver…nt-id"),
        ("value", "a long value of a record", "a lon…ecord"),
        ("file", "/data/kafka/orders-0/00000000000000000042.log", "…/orders-0/…42.log"),
    ],
)
def test_other_texts_are_cut(name: str, text: str, shown: str) -> None:
    assert lines_of_cell(name, text, len(shown)) == [shown]


def test_the_columns_that_answer_are_left() -> None:
    names = ("topic", "bytes", "records", "clock", "last_timestamp_ms", "last_producer_id")
    columns = [Column(name, [name, "x" * 9], is_number=False) for name in names]
    kept = [names[place] for place in fitted(columns, 64)]
    assert {"topic", "bytes", "last_timestamp_ms", "last_producer_id"} <= {*kept}
    assert "clock" not in kept


def test_a_column_without_values_goes_before_one_that_has_some() -> None:
    names = ("group", "topic", "records_skipped", "diverges_at", "records_again", "host")
    cells = (["g", "g"], ["t", "t"], ["0", "0"], ["-", "-"], ["0", "545"], ["h1", "h2"])
    columns = [
        Column(name, [name, *rows], is_number=False)
        for name, rows in zip(names, cells, strict=True)
    ]
    # Wide enough for all but the widest two.
    kept = [names[place] for place in fitted(columns, 34)]
    assert kept == ["group", "topic", "records_again", "host"]


def test_what_a_row_is_about_stays_where_it_is_0() -> None:
    names = ("topic", "partition", "client_id")
    columns = [Column(name, [name, "0"], is_number=True) for name in names]
    assert [names[place] for place in fitted(columns, 17)] == ["topic", "partition"]


def test_one_long_text_does_not_pad_the_others() -> None:
    column = Column("old", ["old", *["1"] * 20, "x" * 300], is_number=False)
    assert column.usual_width == len("old")
    paths = Column("file", ["file", "/a/" + "x" * 60, "/a/" + "x" * 80], is_number=False)
    assert paths.usual_width == paths.width
