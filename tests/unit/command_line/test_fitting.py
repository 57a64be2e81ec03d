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
