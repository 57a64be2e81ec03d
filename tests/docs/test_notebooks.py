"""The notebooks are kept without outputs, and run."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.jobs.job_runs import needs_delta
from tests.support.repository import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGE = ROOT / "docs" / "notebooks.md"
PLOT = "application/vnd.plotly.v1+json"

RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=600).execute()
nbformat.write(notebook, sys.argv[2])
"""


def cells(notebook: Path) -> list[Any]:
    return [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code"]


def named(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    kept = [cell for cell in cells(notebook) if cell.outputs or cell.execution_count is not None]
    assert kept == []


def test_the_page_names_every_notebook() -> None:
    page = PAGE.read_text()
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name})" not in page] == []


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.timeout(900)  # on a machine with other work each takes minutes
@needs_delta
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_a_notebook_runs_and_draws(notebook: Path, tmp_path: Path) -> None:
    # A process of its own: the kernel's loops and sockets are not for this one.
    ran = tmp_path / "ran.ipynb"
    subprocess.run(
        [sys.executable, "-c", RUN, str(notebook), str(ran)],
        cwd=notebook.parent,
        check=True,
        timeout=890,
    )
    outputs = [output for cell in cells(ran) for output in cell.outputs]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert sum(PLOT in output.get("data", {}) for output in outputs) >= 1
