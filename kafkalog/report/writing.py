"""The page as a file."""

from __future__ import annotations

from pathlib import Path

from kafkalog.report.contents import Report
from kafkalog.report.page import page

FILE_NAME = "report.html"


def write_report(report: Report, directory: str) -> str:
    """Write the page into a directory, which is made if it is not there, in place of an older one;
    its path. Who reads it meanwhile sees the one or the other. Raises OSError."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    unfinished = folder / f".{FILE_NAME}.unfinished"
    unfinished.write_text(page(report), encoding="utf-8")
    unfinished.replace(path)
    return str(path)
