"""Rules and traps are numbered so that tests cite them: each is, and no number is made up.

Rules: docs/*.md, most of them in docs/format.md. Traps: what readers of Kafka's files tend to get
wrong, T1 to T42 (the list that the project was started with).
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from docs.find_rule import cites
from kafkalog.format.faults import Fault
from tests.support.repository import ROOT

RULE = re.compile(r"^\| \*\*F(\d+)\*\* \|", re.MULTILINE)
TRAPS = set(range(1, 43))
LAST_TRAP = 42


def numbers(texts: Iterable[str], letter: str) -> tuple[set[int], set[int]]:
    """The numbers named outright, and those between the two ends of a range such as F1 to F4."""
    single = re.compile(rf"\b{letter}(\d+)\b")
    span = re.compile(rf"\b{letter}(\d+)\s*(?:to|–)\s*{letter}(\d+)\b")
    named: set[int] = set()
    between: set[int] = set()
    for text in texts:
        named.update(int(number) for number in single.findall(text))
        for first, last in span.findall(text):
            between.update(range(int(first) + 1, int(last)))
    return named, between


def sources(*folders: str) -> dict[Path, str]:
    """The texts of all Python files but this one, which cites for example only."""
    return {
        path: path.read_text()
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
    }


def rule_documents() -> str:
    return "".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))


def rules() -> set[int]:
    return {int(number) for number in RULE.findall(rule_documents())}


def cited_by_tests(letter: str) -> set[int]:
    tests = {path: text for path, text in sources("tests").items() if path.stem.startswith("test_")}
    return set.union(*numbers(tests.values(), letter))


def test_rules_are_found_in_the_documents() -> None:
    # The others are worth nothing if the pattern misses the rows.
    rows = rule_documents().count("\n| **F")
    assert len(rules()) == rows > 60


def test_every_rule_is_cited_by_a_test() -> None:
    uncited = sorted(rules() - cited_by_tests("F"))
    assert not uncited, f"rules {uncited} have no test that cites them as F<number>"


def test_every_fault_is_named_by_a_rule() -> None:
    page = (ROOT / "docs" / "format.md").read_text()
    missing = [each.label for each in Fault if each and f"`{each.label}`" not in page]
    assert not missing, f"{missing}: docs/format.md has no rule for it; begin with F68"


def test_every_trap_of_reading_is_cited_by_a_test() -> None:
    assert sorted(TRAPS - cited_by_tests("T")) == []


@pytest.mark.parametrize("folder", ["kafkalog", "tests", "jobs", "docs"])
def test_every_cited_rule_exists(folder: str) -> None:
    texts = sources(folder)
    if folder == "docs":
        texts = {path: path.read_text() for path in (ROOT / folder).rglob("*.md")}
    known = rules()
    unknown = {
        path.relative_to(ROOT).as_posix(): sorted(numbers([text], "F")[0] - known)
        for path, text in texts.items()
    }
    made_up = {path: missing for path, missing in unknown.items() if missing}
    assert not made_up, (
        f"{made_up}: no such rule in docs/*.md; the next free number is F{max(known) + 1}"
    )


def test_every_cited_trap_exists() -> None:
    named, _ = numbers(sources("tests").values(), "T")
    assert max(named) <= LAST_TRAP


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("F7", {7}),
        ("F7, F9; F11", {7, 9, 11}),
        ("F7 to F9", {7, 8, 9}),
        ("F7–F9", {7, 8, 9}),
        ("0xF7 and F.col, UTF8", set()),
    ],
)
def test_citations_are_lists_and_ranges(text: str, cited: set[int]) -> None:
    assert set.union(*numbers([text], "F")) == cited


@pytest.mark.parametrize(
    ("line", "is_cited"),
    [("# F7, T3", True), ("F6 to F8", True), ("F6–F7", True), ("F71", False), ("F8 to F9", False)],
)
def test_make_rule_finds_lists_and_ranges(line: str, is_cited: bool) -> None:
    assert cites(line, 7) is is_cited
