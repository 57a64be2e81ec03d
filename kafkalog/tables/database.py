"""`kafkalog.sql`: views and the tables of questions in a DuckDB connection, each under its own
name."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalog.errors import KafkaLogError
from kafkalog.extras import missing_extras_named
from kafkalog.tables.scan import TABLES, Scan, scan_of
from kafkalog.views.options.call_options import (
    OptionValue,
    Paths,
    TimeValue,
    Topics,
    options_of_call,
    path_texts,
)
from kafkalog.views.options.options import PLAN_VIEWS, View
from kafkalog.views.options.topics import ALL_TOPICS
from kafkalog.views.options.view_columns import columns_of_table

if TYPE_CHECKING:
    import duckdb

RECORDS = View.RECORDS.value
# `count(*)` takes the first column, and people read these first.
_FIRST = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_OFFSET = re.compile(r'(?i)(?<![\w."])offset(?![\w"])')


class QueryError(KafkaLogError):
    """A query that DuckDB does not take."""


@dataclass(slots=True)
class Database:
    """A connection with a view for each table, and what reading raised since the last query."""

    connection: duckdb.DuckDBPyConnection
    errors: list[Exception] = field(default_factory=list)

    def run(self, query: str) -> duckdb.DuckDBPyRelation | None:
        """Return what a query gives, None of a statement without rows. Rows are read when they are
        taken. Raises QueryError."""
        import duckdb

        self.errors.clear()
        try:
            return self.connection.sql(query)
        except duckdb.Error as error:
            raise self.explained(error, query) from None

    def explained(self, error: Exception, query: str) -> Exception:
        """Return what reading raised, in place of DuckDB's error with its text; otherwise an error
        with the words of DuckDB."""
        if self.errors:
            return self.errors[0]
        words = str(error).strip()
        if "Parser Error" in words and _OFFSET.search(query):
            words += '\noffset is a word of SQL: write "offset" in quotes, or records.offset'
        return QueryError(words)


def sql(
    path: Paths,
    *,
    topics: Topics | None = None,
    as_of: TimeValue | None = None,
    from_time: TimeValue | None = None,
    until_time: TimeValue | None = None,
    value_format: str | None = None,
    processes: int | None = None,
    **options: OptionValue,
) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with a view for each view and question's table of log directories:
    `kafkalog.sql(path).sql("select topic, count(*) from records group by 1")`.

    Nothing is read before a query needs it, and then only the columns, partitions, offsets and
    times that it asks for. Internal topics are among the rows. Plans are as of now, or of `as_of`.
    With `value_format="json"` table records has column value_decoded. Other arguments are those of
    `kafkalog.scan`. Raises OptionError and LogDirError.
    """
    given = options_of_call(
        columns=None,
        topics=topics,
        offsets=None,
        from_time=from_time,
        until_time=until_time,
        as_of=as_of,
        **options,
    )
    return opened_database(path_texts(path), given, value_format, processes).connection


def opened_database(
    paths: Sequence[str],
    given: dict[str, str],
    value_format: str | None = None,
    processes: int | None = None,
) -> Database:
    """Return the database of the logs under paths, with the source's options. Raises as `sql`
    does."""
    with missing_extras_named():
        import duckdb
    connection = duckdb.connect(":memory:")
    # A time without a zone is in UTC, as everywhere in kafkalog.
    connection.execute("SET TimeZone = 'UTC'")
    database = Database(connection)
    now = {"asOf": str(time.time_ns() // 1_000_000)}
    for table in TABLES:
        of_plan = now if table in {view.value for view in PLAN_VIEWS} else {}
        columns = {"columns": ",".join(_record_columns())} if table == RECORDS else {}
        texts = {"subscribe": ALL_TOPICS, **of_plan, **columns, **given}
        if {"assign", "subscribePattern"} & given.keys():
            del texts["subscribe"]
        source = scan_of(paths, table, texts, processes, value_format)
        if table == RECORDS:
            source.refuse_early()
        dataset = Scan(table, source).to_dataset(database.errors.append)
        connection.register(table, dataset)
    return database


def _record_columns() -> Iterable[str]:
    return dict.fromkeys((*_FIRST, *columns_of_table(RECORDS)))
