"""Lines from templates: the same text whether numbers differ from row to row or not."""

from itertools import pairwise, product

import numpy as np
import pytest

from kafkalog.inspection.dump.text_kernels import ByteColumn
from kafkalog.inspection.dump.text_lines import Template, of_texts

WORDS = ("no", "yes", "")


def template() -> Template:
    inner = Template().text("<").number("inner").word("word", WORDS, "=").bytes_of("name")
    inner.only_if("deep", Template().text("!").number("number"))
    whole = Template().text("(").number("number", "n: ").only_if("shown", inner.text(">"))
    return whole.bytes_of("name").text(")").only_if("shown", Template().text("\n"))


def expected(number: int, inner: int, word: int, shown: int, deep: int, name: str) -> str:
    told = f"<{inner}={WORDS[word]}{name}{f'!{number}' if deep else ''}>" if shown else ""
    return f"(n: {number}{told}{name}){chr(10) if shown else ''}"


def texts(column: ByteColumn) -> list[str]:
    borders = column.borders.tolist()
    return [column.data[begin:end].tobytes().decode() for begin, end in pairwise(borders)]


@pytest.mark.parametrize("is_same", list(product([False, True], repeat=6)))
def test_numbers_that_are_the_same_in_all_rows_give_the_same_text(
    is_same: tuple[bool, ...],
) -> None:
    fields = {
        "number": [5, -12, 2**63 - 1, -(2**63)],
        "inner": [-1, 0, 10, -1],
        "word": [0, 1, 2, 0],
        "shown": [1, 0, 1, 1],
        "deep": [0, 1, 1, 0],
    }
    given = {
        name: [values[0]] * 4 if same else values
        for (name, values), same in zip(fields.items(), is_same, strict=False)
    }
    names = ["", "", "", ""] if is_same[-1] else ["a", "", "bc", "é"]
    numbers = {name: np.array(values, dtype=np.int64) for name, values in given.items()}
    columns = {"name": of_texts([name.encode() for name in names])}
    rows = [expected(*row) for row in zip(*given.values(), names, strict=True)]
    lines = template()
    assert texts(lines.lines(4, numbers, columns)) == rows
    assert texts(lines.lines(4, numbers, columns)) == rows


def test_a_number_can_be_given_once_for_all_rows() -> None:
    numbers = {"number": 7, "inner": 8, "word": 1, "shown": True, "deep": False}
    columns = {"name": of_texts([b"x", b"y"])}
    made = texts(template().lines(2, numbers, columns))
    assert made == [expected(7, 8, 1, 1, 0, name) for name in "xy"]


def test_no_rows_make_no_lines() -> None:
    numbers = {name: np.zeros(0, dtype=np.int64) for name in ("number", "inner", "word", "shown")}
    numbers["deep"] = numbers["number"]
    assert texts(template().lines(0, numbers, {"name": of_texts([])})) == []
