"""What the documents list is what there is: options, views, make targets, jobs, links."""

import re
import subprocess
from pathlib import Path

import pytest

from kafkalog.views.options.options import OPTION_NAMES, View
from kafkalog.views.options.write_options import WRITE_OPTION_NAMES
from kafkalog.views.options.zookeeper.zookeeper_options import ZOOKEEPER_OPTION_NAMES, ZookeeperView
from tests.support.repository import ROOT

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("tests/golden/*.md"),
    ]
)
OPTIONS = (ROOT / "docs" / "options.md").read_text()
ZOOKEEPER = (ROOT / "docs" / "zookeeper.md").read_text()


def first_cells(section: str, document: str = OPTIONS) -> list[str]:
    """The names in the first column of the table under a heading of a document."""
    body = document.split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in body.splitlines() if line.startswith("| `")]
    cells = cells[1:] if section == "Views" else cells  # the heading is a name as well
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_option_has_a_row_and_no_other_has() -> None:
    assert sorted(first_cells("Options")) == sorted(OPTION_NAMES)


def test_every_view_has_a_row_and_no_other_has() -> None:
    assert sorted(first_cells("Views")) == sorted(view.value for view in View)


def test_every_option_of_a_write_has_a_row_and_no_other_has() -> None:
    writing = (ROOT / "docs" / "writing.md").read_text()
    assert sorted(first_cells("Options", writing)) == sorted(WRITE_OPTION_NAMES)


def test_options_and_views_of_zookeepers_files_have_rows_and_no_others_have() -> None:
    assert sorted(first_cells("Options", ZOOKEEPER)) == sorted(ZOOKEEPER_OPTION_NAMES)
    views = sorted(view.value for view in ZookeeperView)
    assert sorted(first_cells("Views", ZOOKEEPER)) == views


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)\)", document.read_text())
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(document: Path) -> None:
    text = document.read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`make ([a-z][a-z-]*)|^make ([a-z][a-z-]*)", text, re.MULTILINE))
    named = {name for pair in targets for name in pair if name}
    assert [name for name in sorted(named) if not re.search(rf"^{name}:", makefile, re.M)] == []
    scripts = set(re.findall(r"(?<!spark/)(?:jobs|examples)/[a-z_]+\.py", text))
    assert [script for script in sorted(scripts) if not (ROOT / script).exists()] == []
    modules = set(re.findall(r"python -m (benchmarks\.[a-z_]+)", text))
    paths = [ROOT / f"{module.replace('.', '/')}.py" for module in sorted(modules)]
    assert [path for path in paths if not path.exists()] == []


def test_make_alone_lists_every_target() -> None:
    told = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.MULTILINE)
    assert [name for name in targets if name != "java" and f"make {name} " not in told] == []
