"""Runs the notebooks and stores them with what they print and draw: `python -m docs.run_notebooks`.

What differs from run to run and from machine to machine is left out: times, versions, directories
in front of paths, and what the JVM writes to stderr when it starts.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import click
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
# On a machine with other work a session takes minutes to start.
_TIMEOUT_S = 900
_LEFT_OUT = "…"


@click.command()
@click.option("--output-dir", type=click.Path(path_type=Path), help="Where to, if not in place.")
@click.argument("notebooks", nargs=-1, type=click.Path(exists=True, path_type=Path))
def main(notebooks: tuple[Path, ...], output_dir: Path | None) -> None:
    """Run NOTEBOOKS, or all, each in its own directory."""
    for path in notebooks or sorted(FOLDER.glob("*.ipynb")):
        write_run(path.resolve(), (output_dir or path.parent) / path.name)


def write_run(path: Path, target: Path) -> None:
    """Run a notebook; write it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=_TIMEOUT_S, startup_timeout=_TIMEOUT_S, resources=resources
    )
    client.execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    text = nbformat.writes(notebook)
    target.write_text(without_directories(text, path.parents[1]), encoding="utf-8")


def without_directories(text: str, project: Path) -> str:
    """Return the text without the project's directory and without those that `mkdtemp` made."""
    made = re.escape(tempfile.gettempdir()) + r"/tmp\w{8}\b"
    return re.sub(made, _LEFT_OUT, text.replace(str(project), _LEFT_OUT))


if __name__ == "__main__":
    main()
