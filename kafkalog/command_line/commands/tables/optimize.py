"""`kafkalog optimize`: the small files of a table as large ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.terminal import print_text
from kafkalog.views.options import click_options as shared
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.progress import progress_bar
from kafkalog.words import counted, size_text

if TYPE_CHECKING:
    from kafkalog.lake.layout import TableOutput
    from kafkalog.lake.written_file import WrittenFile

_EPILOG = """\
TABLE is a directory that an export has written: of Parquet files (a local path, or a URI such as
s3://bucket/path with credentials in the environment), or of an Iceberg table beside its catalog.db.
The table keeps its rows. If an export writes meanwhile, a table of Parquet files is not changed;
an Iceberg table has both changes. See docs/ingest.md.

\b
Examples:
  kafkalog optimize /lake/kafka/ingested_records
  kafkalog optimize /lake/tables/kafkalog/ingested_records
  kafkalog optimize --catalog lake --table raw.records
  kafkalog optimize s3://lake/kafka/ingested_records
"""


@click.command(epilog=_EPILOG)
@shared.table_options
@shared.processes_option
def optimize(
    directory: str | None, catalog: str | None, table: str | None, processes: int | None
) -> None:
    """Write the small files of a table again as large ones, in the order of offsets."""
    from kafkalog.lake.formats.maintained_table import maintained_table

    maintained = maintained_table(directory, catalog, table, "OPTIMIZE")
    done = maintained.optimize(partial(_rewritten, processes))
    if done.removed:
        print_text(f"wrote {_files(done.removed)} again as {_files(done.added)}")
    else:
        print_text("the table has no small files that could be one")


def _rewritten(
    processes: int | None, output: TableOutput, groups: Sequence[Sequence[WrittenFile]]
) -> Iterable[WrittenFile]:
    from kafkalog.lake.small_files import rewritten_in_order

    size = sum(map(_size, groups))
    with progress_bar(size, "rewriting") as bar:
        yield from in_order(
            partial(rewritten_in_order, output),
            groups,
            processes=processes_for(size, processes),
            on_done=lambda group: bar.update(_size(group)),
        )


def _files(files: Sequence[WrittenFile]) -> str:
    return f"{counted(len(files), 'file')} ({size_text(_size(files))})"


def _size(files: Iterable[WrittenFile]) -> int:
    return sum(file.size for file in files)
