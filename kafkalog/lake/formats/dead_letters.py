"""The table of what an export cannot decode, beside the table of records (docs/decoding.md F1275).

It has positions of its own: what a run that fails between the two tables has not written to it, the
next run writes, wherever the other table ends by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.lake.layout import RECORDS
from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.lake.formats.targets import TablePlace
    from kafkalog.lake.target import Target
    from kafkalog.views.planning.ingest_positions import IngestRun

_OPTION = "--dead-letters"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NAME_IN_CATALOG = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def refuse_dead_letters(name: str | None, place: TablePlace, *, is_decoding: bool) -> None:
    """Raise OptionError for a name that no table of dead letters can have, and for an export that
    decodes nothing."""
    if name is None:
        return
    if not is_decoding:
        reason = "only with --key-format or --value-format: it gets what cannot be decoded"
        raise RefusedOptionError(_OPTION, reason)
    in_catalog = place.catalog is not None or place.table is not None
    pattern = _NAME_IN_CATALOG if in_catalog else _NAME
    # From Python it can be anything.
    given: object = name
    if not isinstance(given, str) or not pattern.fullmatch(given):
        raise OptionError(_OPTION, given, "a name of letters, digits, _ and -")
    _refuse_other_tables(name, (RECORDS, MANIFEST, place.table))


def other_tables(target_of: Callable[[str], Target], name: str | None) -> Callable[[str], Target]:
    """Return what gives the tables of records by their names, and raises OptionError for one that
    has the name of the dead letters."""

    def target(table: str) -> Target:
        if name is not None:
            _refuse_other_tables(name, (table,))
        return target_of(table)

    return target


def dead_letters_line(runs: Iterable[IngestRun], location: str) -> str:
    """Return a line about the runs that have written the dead letters."""
    rows = sum(each.rows or 0 for run in runs for each in run.ranges)
    return f"dead letters: {counted(rows, 'row')} in {location}"


def _refuse_other_tables(name: str, others: Iterable[str | None]) -> None:
    if name in others:
        raise OptionError(_OPTION, name, "another name than that of a table of records")
