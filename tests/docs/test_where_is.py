"""The table "Where is ...?" of docs/architecture.md leads to files that define what it names, and
CONTRIBUTING.md to files that exist."""

import re

import pytest

from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| .+\? \| \[`(.+?)`\]\((.+?)\) \| `(\w+)` \|$", PAGE, re.MULTILINE)
# Pages that send a contributor to files. `make` writes the folders that are not among these.
GUIDES = ("CONTRIBUTING.md", "docs/architecture.md")
FOLDERS = ("benchmarks", "conf", "docs", "examples", "jobs", "kafkalog", "schemas", "tests")
NAMED_FOLDER = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`")
NAMED_FILE = re.compile(r"`([\w./-]+\.(?:py|json|md|toml))`")


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


@pytest.mark.parametrize("guide", GUIDES)
def test_files_that_a_guide_names_exist(guide: str) -> None:
    text = (ROOT / guide).read_text()
    folders = [path for path in NAMED_FOLDER.findall(text) if not (ROOT / path).exists()]
    paths = [*ROOT.iterdir(), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.*"))]
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in paths]
    # A guide writes a file from the root, from the package that it is about, or its name alone.
    files = [
        name
        for name in NAMED_FILE.findall(text)
        if not any(path.endswith(f"/{name}") for path in known)
    ]
    missing = [*folders, *files]
    assert not missing, f"{guide} leads to {missing}: name the files that have their contents now"
