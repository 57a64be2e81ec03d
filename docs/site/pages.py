"""Pages of the site that are not in docs/, and links that lead out of it: hooks of MkDocs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File

_ROOT = Path(__file__).parents[2]
# Pages of the project's top, and where the site has them.
_FROM_TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
_API = "reference/python.md"
# With the brackets of pictures left alone.
_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Name the decisions in the navigation, in their order, and the page of each table."""
    decisions = sorted((_ROOT / "docs" / "decisions").glob("*.md"))
    explanation = next(entry["Explanation"] for entry in config["nav"] if "Explanation" in entry)
    reference = next(entry["Reference"] for entry in config["nav"] if "Reference" in entry)
    tables = sorted((_ROOT / "docs" / "reference" / "tables").glob("*.md"))
    columns = next(entry for entry in reference if "Columns" in entry)
    columns["Columns"] = [f"reference/tables/{path.name}" for path in tables]
    explanation[-1]["Decisions"] = [f"decisions/{path.name}" for path in decisions]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the project's top, and what Python programs may import."""
    for name, target in _FROM_TOP.items():
        text = (_ROOT / name).read_text("utf-8")
        files.append(File.generated(config, target, content=_links_from_top(text)))
    files.append(File.generated(config, _API, content="\n".join(_api_lines())))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let a link lead to a page of the site, or be the text alone where the site has none."""
    folder = posixpath.dirname(page.file.src_uri)

    def linked(found: re.Match[str]) -> str:
        text, target = found.groups()
        path, hash_mark, place = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return found[0]
        inside = posixpath.normpath(posixpath.join(folder, path))
        if inside.startswith("../"):
            of_top = _FROM_TOP.get(inside.removeprefix("../"))
            if of_top is None:
                return text
            inside = of_top
        elif files.get_file_from_path(inside) is None and (_ROOT / "docs" / inside).exists():
            return text  # a folder, or a program
        return f"[{text}]({posixpath.relpath(inside, folder or '.')}{hash_mark}{place})"

    parts = _CODE.split(markdown)
    parts[::2] = [_LINK.sub(linked, part) for part in parts[::2]]
    return "".join(parts)


def _links_from_top(text: str) -> str:
    """Return the text as a page of docs/ would have it."""
    parts = _CODE.split(text)
    for number in range(0, len(parts), 2):
        moved = re.sub(r"\]\((?!https?:|#|docs/)", "](../", parts[number])
        parts[number] = moved.replace("](docs/", "](")
    return "".join(parts)


def _api_lines() -> Iterator[str]:
    yield "# Python"
    yield ""
    yield "Programs import these names from `kafkalog`, or from a module of it that is named here."
    for module in ("kafkalog", "kafkalog.testing", "kafkalog.zookeeper"):
        for name in griffe.load(module, search_paths=[_ROOT]).exports:
            yield f"\n::: {module}.{name}"
