"""What format the table in a directory has, so that no run writes another one's files among its.

A reader of a directory takes the files that its format names: two formats in one directory are two
tables, of which one's clean-up removes the other's files. Rule: docs/ingest.md F938.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.table_formats import table_format

_OUTPUT = "--output-dir"


def format_of_table(path: str, *, is_marked: bool = False) -> str | None:
    """Return the format of the table in a directory: delta, iceberg, parquet or json; None without
    one. If `is_marked`, files alone do not make a table. Raises OSError as the file system does."""
    return table_format(OutputDirectory(path).names, is_marked=is_marked)


def refuse_other_formats(output_dir: str, paths: Iterable[str], table_format: str) -> None:
    """Raise RefusedOptionError where a directory that is, or would be, that of a table below
    `output_dir` has a table of another format."""
    for path in paths:
        found = format_of_table(path)
        if found is not None and found != table_format:
            raise RefusedOptionError(
                _OUTPUT,
                f"{path} is a table in format {found}, and this run writes {table_format}: give "
                f"--format {found}, or another directory than {output_dir}",
            )


def refuse_inside_table(output_dir: str) -> None:
    """Raise OptionError for an --output-dir that is the directory of a table, or is inside one."""
    for place in _with_parents(absolute_path(output_dir)):
        found = format_of_table(place, is_marked=True)
        if found is not None:
            allowed = (
                f"a directory of tables, such as {posixpath.dirname(place)}: {place} is a table in "
                f"format {found}"
            )
            raise OptionError(_OUTPUT, output_dir, allowed)


def _with_parents(path: str) -> Iterator[str]:
    """Yield a path and the directories above it; of a URI only itself, for what is above it may
    not be readable."""
    yield path
    while not is_remote(path) and path != posixpath.dirname(path):
        path = posixpath.dirname(path)
        yield path
