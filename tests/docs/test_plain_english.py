"""Documents, docstrings, comments, help and messages keep to plain English.

The patterns are phrases that are practically never right here: each has a replacement.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import re2

from tests.support.repository import ROOT

COMPARED = "longer|more|less|fewer|larger|greater|smaller|later|earlier|lower|higher|better|other"
# A pattern, and what to write instead. A space matches any white space, also at the end of a line.
PATTERNS = {
    rf"(?:is|are|was|were) no (?!{COMPARED})(?=\w)": "is not a ..., has no ...",
    r"\"\"\"Of ": "a docstring that begins with a verb",
    r"\"\"\"The same (?:as|but|for|of|with)\b": "a docstring that can be read alone",
    # A quoted one is the name of a user.
    r"nobody(?![\"'])": "no reader, no broker, unknown",
    r"(?:is|are|was|were|be|been) told\b(?! apart)": "is reported, is known",
    r"tells? (?:of|nothing)\b": "reports, does not show",
    r"stands? (?:there|beside|behind|below|above)\b": "is there, is beside",
    r"held against": "compared with",
    r"(?:is|are|was|were|has|have) gone\b": "is missing, has been deleted",
    r"anew": "again, recreated",
    r"(?:is|are|was|were) asked (?:for|of)\b": "is requested, is selected",
    r"behind (?:it|that|them)\b": "after it",
    r"sees? to (?:it|that)\b": "checks, makes sure",
}
FOLDERS = ("benchmarks", "docs", "examples", "jobs", "kafkalog", "notebooks", "schemas", "tests")
SUFFIXES = {".md", ".py", ".json", ".ipynb"}
THIS = Path(__file__)


def revised_files() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*"))]
    return sorted(path for path in found if path.suffix in SUFFIXES and path != THIS)


def compiled(pattern: str) -> re.Pattern[str]:
    # "There is no" is right, and is matched as a whole to be left out.
    spaced = pattern.replace(" ", r"[\s#>]+")
    return re.compile(rf"(?P<there>\bthere[\s#>]+)?(?<!\w){spaced}", re.IGNORECASE)


def loose(pattern: str) -> Any:
    """Return what finds whatever the pattern does, and more, in linear time: without the look at
    what follows."""
    bare = re.sub(r"\(\?[!=][^)]*\)", "", pattern)
    return re2.compile("(?i)" + bare.replace(" ", r"\W+"))


COMPILED = {(loose(each), compiled(each)): instead for each, instead in PATTERNS.items()}


def dialect_in(text: str) -> list[tuple[int, str, str]]:
    """Return line, phrase and replacement of each phrase that is not plain English."""
    return sorted(
        (text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead)
        for (may_be_in, pattern), instead in COMPILED.items()
        if may_be_in.search(text)
        for match in pattern.finditer(text)
        if match["there"] is None
    )


def test_every_folder_has_revised_files() -> None:
    revised = {path.relative_to(ROOT).parts[0] for path in revised_files()}
    assert set(FOLDERS) - revised == set()


def test_documents_and_sources_keep_to_plain_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}; write: {instead}"
        for path in revised_files()
        for line, phrase, instead in dialect_in(path.read_text())
    ]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "bytes that are no\n    batch",
        "a key that is no UTF-8",
        '"""Of each producer the last batch."""',
        "which nobody reads",
        "it was told on stderr",
        "the entry stands\n# behind the header",
    ],
)
def test_dialect_is_found(text: str) -> None:
    assert len(dialect_in(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "the file is no longer there",
        "if there\n    is no record",
        "There are no gaps",
        "the two are told apart",
        "a copy is no larger than the log",
    ],
)
def test_plain_english_is_left_alone(text: str) -> None:
    assert dialect_in(text) == []
