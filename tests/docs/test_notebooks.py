"""The notebooks are stored with their outputs, and give the same where the package is installed."""

import base64
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kafkalog.spark.packing import write_zip
from tests.support.jobs.job_runs import needs_delta
from tests.support.repository import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGE = ROOT / "docs" / "notebooks.md"
MIB = 1024 * 1024
# What begins a path of some machine, but for the time zones and units of the texts.
MACHINE_PATH = re.compile(r"(?<![\w….])/(?:home|root|tmp|work|build|usr|opt|var|Users|mnt)/")
HEAD = re.compile(r"<th>(.*?)</th>")


def code_cells(notebook: Path) -> list[Any]:
    return [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code"]


def named(path: Path) -> str:
    return path.stem


def contents(output: Any) -> dict[str, str]:
    """What an output shows, by its media type; text that a cell prints is text/plain."""
    return {"text/plain": output.text} if output.output_type == "stream" else dict(output.data)


def shown(notebook: Path) -> list[list[tuple[str, str]]]:
    """What each code cell shows: texts and tables as they are, and that there is a picture. How
    wide a table of plain text is follows the length of the directory, which is left out."""
    return [
        [
            (media, "" if media.startswith("image/") else re.sub("---+|  +", "  ", text))
            for output in cell.outputs
            for media, text in sorted(contents(output).items())
        ]
        for cell in code_cells(notebook)
    ]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_a_notebook_is_stored_with_charts_that_need_no_script(notebook: Path) -> None:
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    pictures = [contents(each)["image/png"] for each in outputs if "image/png" in contents(each)]
    assert pictures
    assert all(base64.b64decode(picture)[1:4] == b"PNG" for picture in pictures)
    assert not [each for each in outputs if "<script" in contents(each).get("text/html", "")]
    assert notebook.stat().st_size < 2 * MIB


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_outputs_have_no_path_of_a_machine_and_no_warning(notebook: Path) -> None:
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    texts = [text for each in outputs for media, text in contents(each).items() if "text" in media]
    assert texts
    assert [found[0] for text in texts for found in MACHINE_PATH.finditer(text)] == []
    assert [each.text for each in outputs if each.get("name") == "stderr"] == []


def test_a_chart_comes_before_the_long_table_of_columns() -> None:
    kinds = [
        media
        for cell in code_cells(ROOT / "notebooks" / "a_first_look.ipynb")
        for output in cell.outputs
        for media in contents(output)
    ]
    tables = [
        cell.source
        for cell in code_cells(ROOT / "notebooks" / "a_first_look.ipynb")
        if "described(segments)" in cell.source
    ]
    assert tables and kinds.index("image/png") < kinds.index("text/html")


def test_the_page_names_every_notebook() -> None:
    page = PAGE.read_text()
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name})" not in page] == []


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what an installation has, and the notebooks with what they read; nothing
    else of the source tree."""
    folder = tmp_path_factory.mktemp("installed")
    write_zip(folder / "kafkalog.zip")
    with zipfile.ZipFile(folder / "kafkalog.zip") as archive:
        archive.extractall(folder / "site")
    for name in ("notebooks", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.timeout(900)  # on a machine with other work each takes minutes
@needs_delta
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=named)
def test_a_notebook_gives_what_is_stored_where_the_package_is_installed(
    notebook: Path, installed: Path, tmp_path: Path
) -> None:
    # A process of its own: the kernel's loops and sockets are not for this one.
    program = ROOT / "docs" / "run_notebooks.py"
    copied = installed / "notebooks" / notebook.name
    subprocess.run(
        [sys.executable, str(program), str(copied), "--output-dir", str(tmp_path)],
        # What PYTHONPATH names comes before the editable installation.
        env={**os.environ, "PYTHONPATH": str(installed / "site")},
        cwd=tmp_path,
        check=True,
        timeout=890,
    )
    assert shown(tmp_path / notebook.name) == shown(notebook)
