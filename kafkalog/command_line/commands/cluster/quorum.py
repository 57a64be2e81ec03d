"""`kafkalog quorum`: the copies of a cluster's metadata, and whether they make a quorum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    table_format_option,
    write_table,
)
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import time_text

if TYPE_CHECKING:
    from kafkalog.inspection.metadata.quorum import Quorum

_TEXT_COLUMNS = (
    *("node_id", "is_voter", "last_epoch", "end_offset", "last_timestamp_ms", "behind"),
    *("diverges_at", "snapshot_end_offset", "state_epoch", "leader_id", "voted_id", "path"),
)

_EPILOG = """\
\b
PATH is the log directory, or metadata.log.dir, of a controller or a broker, or a
glob of these: a local path, or a URI such as s3://bucket/path with credentials
in the environment. Give those of all nodes that are left.

A row is a node's copy of __cluster_metadata, the best first: the one with the highest last epoch,
then the longest log. BEHIND counts the records of the best copy that a copy does not have;
DIVERGES-AT is the first offset at which it has another leader's record. STATE-EPOCH, LEADER-ID and
VOTED-ID are those of the file quorum-state. Where the majority is lost, kafkalog quorum rebuild
writes a new directory. A directory that is named rebuild is ./rebuild here.

\b
Examples:
  kafkalog quorum /mnt/controller-1/metadata /mnt/controller-2/metadata
  kafkalog quorum '/backup/*/metadata' --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@table_format_option
def quorum(paths: Sequence[str], table_format: str) -> ExitCode:
    """Compare controllers' and brokers' copies of the metadata: voters, majority, divergence."""
    from kafkalog.inspection.metadata.copies import metadata_copies
    from kafkalog.inspection.metadata.quorum import COPY_COLUMNS, Quorum

    names = printed_columns(COPY_COLUMNS, table_format, _TEXT_COLUMNS)
    found = Quorum(metadata_copies(paths))
    rows = list(found.rows())
    is_text = table_format == "text"
    values = [[row[name] for name in names] for row in rows]
    write_table(names, values, table_format, texts={"last_timestamp_ms": time_text})
    for line in _lines(found):
        (print_text if is_text else print_note)(line)
    damages = [damage for copy in found.copies for damage in copy.damages]
    for damage in damages:
        print_note(str(damage))
    return ExitCode.UNREADABLE_INPUT if damages else ExitCode.DONE


def _lines(found: Quorum) -> Iterator[str]:
    """Sum the copies up."""
    best, voters = found.best, found.voters
    last_epoch, end_offset = best.position
    yield f"best copy: {best.path}: epoch {last_epoch}, end offset {end_offset}"
    if not voters:
        yield "voters: not known, neither quorum-state nor the log names them"
        return
    kind = "dynamic" if found.kraft_version else "static"
    yield f"voters, {kind} (kraft.version {found.kraft_version}): {'; '.join(map(str, voters))}"
    here = sorted(str(copy.node_id) for copy in found.voters_here)
    is_majority = len(here) >= found.majority
    yield (
        f"copies of voters: {', '.join(here) or 'none'}, {len(here)} of {len(voters)}: "
        + ("a majority" if is_majority else f"no majority, which {found.majority} are")
    )
    held = found.majority_offset
    if held is not None:
        yield f"a majority has all records below offset {held}"
