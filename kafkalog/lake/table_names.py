"""The names of tables that are named from topics. Rule: docs/ingest.md F536."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from kafkalog.errors import OptionError
from kafkalog.lake.manifest_rows import TABLE as MANIFEST

_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_]")
_MANIFEST_ENDING = "_manifest"
_OPTION = "--table-per-topic"


def table_of(topic: str) -> str:
    """Return the name of a topic's table: `eu.page-views` has table `eu_page_views`, which every
    catalog and every dialect of SQL takes without quotes."""
    return _NOT_IN_NAMES.sub("_", topic)


def tables_of(topics: Iterable[str]) -> dict[str, str]:
    """Return the name of each topic's table.

    Raises OptionError for topics that would share a table, as `a.b` and `a_b`; also where names
    differ in capital letters only, which many catalogs take for the same.
    """
    tables = {topic: table_of(topic) for topic in sorted(set(topics))}
    found: dict[str, list[str]] = defaultdict(list)
    for topic, table in tables.items():
        found[table.lower()].append(topic)
    for table, sharing in found.items():
        if len(sharing) > 1:
            allowed = f"topics with tables of their own, and {table} would be of each: give one"
            raise OptionError(_OPTION, ", ".join(sharing), f"{allowed} with --topic")
        # Beside an Iceberg table is a manifest with its name.
        if table == MANIFEST or table.removesuffix(_MANIFEST_ENDING) in found.keys() - {table}:
            raise OptionError(_OPTION, sharing[0], f"other topics: {table} reports the runs")
    return tables
