"""The page as a file."""

from __future__ import annotations

import os

from kafkalog.report.contents import Report
from kafkalog.report.page import page
from kafkalog.storage.files.output_files import write_file

FILE_NAME = "report.html"


def write_report(report: Report, directory: str) -> str:
    """Write the page into a directory, which is made if it is not there, in place of an older one;
    its path. Who reads it meanwhile sees the one or the other. Raises OSError."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, FILE_NAME)
    write_file(path, page(report).encode(), os.fsync)
    return path
