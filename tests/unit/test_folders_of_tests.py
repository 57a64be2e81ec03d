"""Test folders share what is in tests/support, and nothing else."""

import ast
from pathlib import Path

import pytest

from tests.support.repository import ROOT


def imported(path: Path) -> set[str]:
    """The modules of `tests` that a file imports."""
    nodes = ast.walk(ast.parse(path.read_text()))
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in names if name.startswith("tests.")}


@pytest.mark.parametrize("place", ["tests", "benchmarks", "docs"])
def test_folders_import_no_helpers_of_each_other_and_no_file_imports_a_test(place: str) -> None:
    files = sorted((ROOT / place).rglob("*.py"))
    strangers = {
        str(path.relative_to(ROOT)): sorted(others)
        for path in files
        if (others := {name for name in imported(path) if not _may_import(path, name)})
    }
    assert files
    assert strangers == {}


def _may_import(path: Path, name: str) -> bool:
    _, folder, *_ = name.split(".")
    is_test = name.rpartition(".")[2].startswith("test_")
    own = path.relative_to(ROOT).parts[:2]
    return not is_test and (folder == "support" or own == ("tests", folder))
