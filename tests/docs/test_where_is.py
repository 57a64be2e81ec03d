"""The table "Where is ...?" of docs/architecture.md leads to files that define what it names."""

import re

import pytest

from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| .+\? \| \[`(.+?)`\]\((.+?)\) \| `(\w+)` \|$", PAGE, re.MULTILINE)


def test_there_are_at_least_forty_questions() -> None:
    questions = re.findall(r"^\| .+\? \|", PAGE, re.MULTILINE)
    assert len(questions) == len(ROWS) >= 40


@pytest.mark.parametrize(("path", "link", "name"), ROWS, ids=[row[2] for row in ROWS])
def test_each_answer_is_a_file_that_defines_the_name(path: str, link: str, name: str) -> None:
    file = ROOT / "kafkalog" / path
    assert (ROOT / "docs" / link).resolve() == file
    assert file.exists(), f"docs/architecture.md leads to {path}: name the file that has {name} now"
    defines = re.search(rf"^\s*(class|def) {name}\b", file.read_text(), re.MULTILINE)
    assert defines, f"docs/architecture.md leads to {path}, which does not define {name}"
