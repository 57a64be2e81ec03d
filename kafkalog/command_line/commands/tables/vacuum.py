"""`kafkalog vacuum`: files in a table's directory that are not part of the table."""

from __future__ import annotations

import time

import click

from kafkalog.command_line.terminal import print_note, print_text
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import Duration
from kafkalog.words import counted, size_text

_EPILOG = """\
TABLE is a directory that an export has written: of Parquet files (a local path, or a URI such as
s3://bucket/path with credentials in the environment), or of an Iceberg table beside its catalog.db.
Exports that were killed leave such files; an export under way has some, too, so give no time that
is shorter than an export. Of an Iceberg table, snapshots that are older than that are expired, and
files that only they have are removed. See docs/ingest.md.

\b
Examples:
  kafkalog vacuum /lake/kafka/ingested_records --dry-run
  kafkalog vacuum /lake/kafka/ingested_records --older-than 2d
  kafkalog vacuum --catalog lake --table raw.records
"""


@click.command(epilog=_EPILOG)
@shared.table_options
@click.option(
    "--older-than",
    "age_ms",
    metavar="DURATION",
    type=Duration(),
    default="7d",
    show_default=True,
    help="Only files that were written longer ago.",
)
@click.option("--dry-run", is_flag=True, help="Print the paths and remove nothing.")
def vacuum(
    directory: str | None, catalog: str | None, table: str | None, age_ms: int, dry_run: bool
) -> None:
    """Remove files in a table's directory that are not part of the table, and print their paths."""
    from kafkalog.lake.formats.maintained_table import maintained_table

    maintained = maintained_table(directory, catalog, table, "VACUUM")
    before_ms = time.time_ns() // 1_000_000 - age_ms
    snapshots = maintained.old_snapshots(before_ms)
    if not dry_run:
        maintained.expire_snapshots(snapshots)
    files = maintained.leftover_files(before_ms, snapshots if dry_run else ())
    for file in files:
        path = maintained.directory.relative(file)
        if not dry_run:
            maintained.directory.delete(path)
        print_text(maintained.directory.location(path))
    if snapshots:
        verb = "to expire" if dry_run else "expired"
        print_note(f"{verb}: {counted(len(snapshots), 'snapshot')}")
    size = size_text(sum(file.size for file in files))
    verb = "to remove" if dry_run else "removed"
    print_note(f"{verb}: {counted(len(files), 'file')} ({size})")
