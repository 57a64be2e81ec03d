"""`kafkalog.sql`: views and the tables of questions in a DuckDB connection, each under its own
name."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkalog.errors import RefusedOptionError
from kafkalog.extras import missing_extras_named
from kafkalog.log_lines import forget_warnings
from kafkalog.tables.decoded_source import ValueOptions
from kafkalog.tables.scan import ARGUMENTS, NO_VALUES, TABLES, Scan, scan_of, tables_of
from kafkalog.tables.zookeeper_source import ZOOKEEPER_TABLES, divided_paths, shared_options
from kafkalog.views.options.call_options import (
    OptionValue,
    Paths,
    TimeValue,
    Topics,
    options_of_call,
    path_texts,
)
from kafkalog.views.options.offset_options import TIME_OPTIONS
from kafkalog.views.options.option_names import options_named_as
from kafkalog.views.options.options import (
    ISOLATED_VIEWS,
    METADATA_VIEWS,
    PLAN_VIEWS,
    RECORD_VIEWS,
    SPLIT_VIEWS,
    View,
    columns_of_table,
)
from kafkalog.views.options.topics import ALL_TOPICS, TOPIC_OPTIONS
from kafkalog.words import in_a_line

if TYPE_CHECKING:
    import duckdb

RECORDS = View.RECORDS.value
# `count(*)` takes the first column, and people read these first.
_FIRST = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
# Arguments of `kafkalog.scan` that a query stands for.
_OF_QUERIES = frozenset(("columns", "offsets", "view"))
_OF_ZNODES = frozenset(("znode", "zxid_as_of"))
_TABLE = re.compile(r"Table with name (\w+) does not exist")
_OFFSET = re.compile(r'(?i)(?<![\w."])offset(?![\w"])')


@dataclass(slots=True)
class Database:
    """A connection with a view for each table, and what reading raised since the last query."""

    connection: duckdb.DuckDBPyConnection
    errors: list[Exception] = field(default_factory=list)

    @contextmanager
    def reader(self, query: str, rows: int) -> Iterator[pa.RecordBatchReader]:
        """Read what a query gives, in batches of so many rows; nothing, of a statement without
        rows. Raises OptionError for a query that DuckDB does not take, and what reading raises."""
        import duckdb

        self.errors.clear()
        forget_warnings()  # each query says what its rows do not show, and says it once
        try:
            found: duckdb.DuckDBPyRelation | None = self.connection.sql(query)
            if found is None:
                yield pa.RecordBatchReader.from_batches(pa.schema([]), [])
                return
            # Versions below 2 have another name for it.
            read = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
            yield read(rows)
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            if self.errors:  # DuckDB and Arrow pass on the text of an error only
                raise self.errors[0] from None
            if not isinstance(error, duckdb.Error):
                raise
            raise RefusedOptionError("QUERY", _words(error, query)) from None


def _words(error: Exception, query: str) -> str:
    words = in_a_line(str(error))
    if "Parser Error" in words and _OFFSET.search(query):
        words += '; offset is a word of SQL: write "offset" in quotes, or records.offset'
    unknown = _TABLE.search(words)
    if unknown and unknown[1] in ZOOKEEPER_TABLES:
        return f"{unknown[0]}: it is of ZooKeeper's files: give a server's data directory too"
    if unknown and unknown[1] in TABLES:
        return f"{unknown[0]}: it is of logs: give log directories too"
    return words


def sql(
    path: Paths,
    *,
    topics: Topics | None = None,
    as_of: TimeValue | None = None,
    from_time: TimeValue | None = None,
    until_time: TimeValue | None = None,
    value_format: str | None = None,
    value_schema: str | None = None,
    value_message: str | None = None,
    value_schema_id: int | None = None,
    schemas_topic: str | None = None,
    schema_registry: str | None = None,
    processes: int | None = None,
    **options: OptionValue,
) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with a view for each view and question's table of log directories:
    `kafkalog.sql(path).sql("select topic, count(*) from records group by 1")`.

    Nothing is read before a query needs it, and then only the columns, partitions, offsets and
    times that it asks for. Internal topics are among the rows. Plans are as of now, or of `as_of`.
    With a `value_format`, such as "json" or "confluent-avro", table records has column
    value_decoded. All arguments are those of `kafkalog.scan`. Raises OptionError and LogDirError.
    """
    for name in _OF_QUERIES & options.keys():
        raise RefusedOptionError(name, "a query chooses them: it reads only what it asks for")
    given = options_of_call(
        ARGUMENTS - _OF_ZNODES,
        columns=None,
        topics=topics,
        offsets=None,
        from_time=from_time,
        until_time=until_time,
        as_of=as_of,
        **options,
    )
    values = ValueOptions(
        value_format, value_schema, value_message, value_schema_id, schemas_topic, schema_registry
    )
    with options_named_as(ARGUMENTS):
        return opened_database(path_texts(path), given, values, processes).connection


def opened_database(
    paths: Sequence[str],
    given: Mapping[str, str],
    values: ValueOptions = NO_VALUES,
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
    places = divided_paths(paths, given)
    for table in tables_of(places):
        is_of_logs = bool(places.logs) and table in TABLES
        options = _options(table, given) if is_of_logs else shared_options(given)
        source = scan_of(places, table, options, processes, values)
        if table == RECORDS:
            source.refuse_early()
        dataset = Scan(table, source).to_dataset(database.errors.append)
        connection.register(table, dataset)
    return database


def _options(table: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return those of the given options that a table has, and the defaults of others."""
    texts = dict(given)
    if table in _INTERNAL or not set(TOPIC_OPTIONS) & texts.keys():
        texts = {name: text for name, text in texts.items() if name not in TOPIC_OPTIONS}
        texts["subscribe"] = ALL_TOPICS
    absent = [*([] if table in _ISOLATED else _ISOLATION), *([] if table in _TIMED else _TIMES)]
    texts = {name: text for name, text in texts.items() if name not in absent}
    if table in _PLANS:
        texts.setdefault("asOf", str(time.time_ns() // 1_000_000))
    if table == RECORDS:
        columns = dict.fromkeys((*_FIRST, *columns_of_table(RECORDS)))
        texts.setdefault("columns", ",".join(columns))
    return texts


def _names(views: Iterable[View]) -> frozenset[str]:
    return frozenset(view.value for view in views)


_PLANS, _TIMED = _names(PLAN_VIEWS), _names(SPLIT_VIEWS)
_ISOLATED = _names(ISOLATED_VIEWS) | {
    *("commit_history", "consumer_lag", "group_resume", "lag_history")
}
# Tables about internal topics, whatever topics are chosen.
_INTERNAL = _names((*RECORD_VIEWS, *METADATA_VIEWS)) - {RECORDS}
_ISOLATION, _TIMES = ("isolationLevel", "kafka.isolation.level"), TIME_OPTIONS
