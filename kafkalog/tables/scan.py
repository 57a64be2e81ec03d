"""`kafkalog.scan`: a view, or the table of a question, as Arrow, which is read when its rows are
requested. As a data set of Arrow's, DuckDB and polars ask it for the columns and the rows that a
query needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from kafkalog.arguments import known_arguments
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.extras import missing_extras_named
from kafkalog.tables.decoded_source import DecodedSource, ValueOptions
from kafkalog.tables.filters import Filter
from kafkalog.tables.question_source import QUESTION_TABLES, QuestionSource
from kafkalog.tables.view_source import ViewSource
from kafkalog.tables.zookeeper_source import (
    ZOOKEEPER_TABLES,
    Places,
    ZookeeperSource,
    divided_paths,
    shared_options,
)
from kafkalog.views.options.call_options import (
    OffsetsGiven,
    OptionValue,
    Paths,
    TimeValue,
    Topics,
    argument_names,
    options_of_call,
    path_texts,
)
from kafkalog.views.options.option_names import options_named_as
from kafkalog.views.options.options import View, read_options
from kafkalog.words import name_suggestions

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

NO_VALUES = ValueOptions()
# Of `kafkalog.scan`, of which `kafkalog.sql` has most.
ARGUMENTS = frozenset(
    {
        *argument_names(),
        *(each.name for each in fields(ValueOptions)),
        *("view", "processes", "znode", "zxid_as_of"),
    }
)
_OF_ZOOKEEPER = ("znode", "zxidAsOf")
TABLES = tuple(sorted({*(view.value for view in View), *QUESTION_TABLES}))
# Makes the reader of some columns, None for all, of the rows that pass a filter.
MakeReader = Callable[[Sequence[str] | None, pc.Expression | None], pa.RecordBatchReader]


class Source(Protocol):
    """What a table is read from."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        ...

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        ...

    def batches(self, columns: Sequence[str], given: Filter) -> Iterator[pa.RecordBatch]:
        """Return these columns of the rows that pass a filter."""
        ...


@dataclass(frozen=True, slots=True)
class BothSources:
    """A table that logs and ZooKeeper's files have: the rows of both."""

    logs: Source
    zookeeper: Source

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.logs.schema

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        self.logs.refuse_early()
        self.zookeeper.refuse_early()

    def batches(self, columns: Sequence[str], given: Filter) -> Iterator[pa.RecordBatch]:
        """Return these columns of the rows that pass a filter."""
        return chain(self.logs.batches(columns, given), self.zookeeper.batches(columns, given))


@known_arguments
class Scan:
    """A table that is read when its rows are requested, again each time: by all cores, and in
    bounded memory, for a batch is read when the one before is taken, some ahead."""

    def __init__(self, table: str, source: Source) -> None:
        self.table = table
        self._source = source
        self.schema: pa.Schema = source.schema

    def __repr__(self) -> str:
        return f"kafkalog.scan of {self.table}: {', '.join(self.schema.names)}"

    def to_reader(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> pa.RecordBatchReader:
        """Return the rows as a reader of record batches: these columns, all without, of the rows
        that pass the filter. Of view `records` and others about logs only those partitions,
        offsets and times are read that the filter leaves. Raises OptionError for an unknown
        column."""
        names = self.schema.names if columns is None else list(columns)
        unknown = [name for name in names if name not in self.schema.names]
        if unknown:
            allowed = f"columns of {self.table}: {name_suggestions(unknown, self.schema.names)}"
            raise OptionError("columns", ", ".join(unknown), allowed)
        schema = pa.schema([self.schema.field(name) for name in names])
        batches = self._source.batches(names, Filter(filter, self.schema))
        return pa.RecordBatchReader.from_batches(schema, batches)

    def to_table(self) -> pa.Table:
        """Return all rows as a pyarrow Table."""
        return self.to_reader().read_all()

    def to_dataset(
        self, on_error: Callable[[Exception], None] = lambda error: None
    ) -> TableDataset:
        """Return a pyarrow Dataset, for libraries that ask for columns and rows themselves, such as
        `polars.scan_pyarrow_dataset`."""
        return TableDataset(self.schema, self.to_reader, on_error)

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a DataFrame of pandas."""
        with missing_extras_named():
            frame: pd.DataFrame = self.to_table().to_pandas(maps_as_pydicts="strict")
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a DataFrame of polars."""
        with missing_extras_named():
            import polars as pl
        frame = pl.from_arrow(self.to_table())
        if not isinstance(frame, pl.DataFrame):
            raise TypeError(f"{type(frame)} is not a DataFrame")
        return frame

    def to_duckdb(
        self, name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Make it a view `name` of a DuckDB connection, the module's own one without, and return
        it. A query reads only the columns and rows that it needs."""
        with missing_extras_named():
            import duckdb
        connection = connection or duckdb.default_connection()
        connection.register(name, self.to_dataset())
        return connection.table(name)


def scan(
    path: Paths,
    view: str = View.RECORDS.value,
    *,
    columns: str | Sequence[str] | None = None,
    topics: Topics | None = None,
    offsets: OffsetsGiven | None = None,
    from_time: TimeValue | None = None,
    until_time: TimeValue | None = None,
    as_of: TimeValue | None = None,
    value_format: str | None = None,
    value_schema: str | None = None,
    value_message: str | None = None,
    value_schema_id: int | None = None,
    schemas_topic: str | None = None,
    schema_registry: str | None = None,
    processes: int | None = None,
    znode: str | None = None,
    zxid_as_of: int | str | None = None,
    **options: OptionValue,
) -> Scan:
    """Return a view of Kafka's log directories or of ZooKeeper's files, or the table of a question,
    to be read as Arrow without Spark and Java.

    `view` is a view of `kafkalog.read`, or a table of a question: checksum_report, commit_history,
    compaction_findings, connectors, connector_tasks, connector_offsets, consumer_lag,
    group_generations, group_resume, heavy_keys, kept_positions, key_usage, ksql_statements,
    lag_history, mirror_checkpoints, mirror_heartbeats, mirror_offset_syncs, schema_ids,
    streams_positions or transaction_report. The other arguments are those of `kafkalog.read`;
    `processes` is how many processes read, all cores without it. With a `value_format` view records
    has columns value_decoded and value_error: "string", "json", whose fields are those of
    `value_schema` or, without it, of a sample, "avro" with a `value_schema`, "protobuf" with a
    descriptor set as `value_schema` and a `value_message`, and Confluent's formats of the same
    names, such as "confluent-avro", whose schemas are those of the topic `_schemas` in the input or
    at `schemas_topic`, or of `schema_registry`, a URL or a directory. Paths of ZooKeeper's files
    have the views of docs/zookeeper.md, such as znodes or partition_states, `znode` and
    `zxid_as_of`.

    Raises OptionError, and LogDirError for a path without Kafka's files; errors that depend on the
    files' contents are raised when it is read.
    """
    given = options_of_call(
        ARGUMENTS,
        columns=columns,
        topics=topics,
        offsets=offsets,
        from_time=from_time,
        until_time=until_time,
        as_of=as_of,
        **options,
    )
    values = ValueOptions(
        value_format, value_schema, value_message, value_schema_id, schemas_topic, schema_registry
    )
    if values != NO_VALUES and view != View.RECORDS.value:
        raise RefusedOptionError("value_format", "only view records has values to decode")
    of_zookeeper = {"znode": znode, "zxidAsOf": zxid_as_of}
    given |= {name: str(value) for name, value in of_zookeeper.items() if value is not None}
    with options_named_as(ARGUMENTS):
        places = divided_paths(path_texts(path), given)
        found = scan_of(places, view, given, processes, values)
        found.refuse_early()
    return Scan(view, found)


def scan_of(
    places: Places,
    view: str,
    given: Mapping[str, Any],
    processes: int | None,
    values: ValueOptions = NO_VALUES,
) -> Source:
    """Return the source of a view or table; records have their values decoded if a format is
    given. Raises OptionError, and LogDirError for a topic of schemas that cannot be read."""
    zookeeper, logs = places
    tables = tables_of(places)
    if view not in tables:
        suggested = f"a view or table: {name_suggestions([view], tables)}"
        if view in ZOOKEEPER_TABLES:
            suggested = "the data directory of a server of ZooKeeper among the paths"
        raise OptionError("view", view, suggested)
    of_zookeeper = [name for name in _OF_ZOOKEEPER if name in given]
    if zookeeper and view in ZOOKEEPER_TABLES:
        if not logs or view not in TABLES:
            return ZookeeperSource.of(zookeeper, view, given)
        own_options = {name: given[name] for name in ("columns", *of_zookeeper) if name in given}
        rest = {name: text for name, text in given.items() if name not in of_zookeeper}
        return BothSources(
            _source_of_logs(logs, view, rest, processes, values),
            ZookeeperSource.of(zookeeper, view, {**shared_options(given), **own_options}),
        )
    if of_zookeeper:
        raise RefusedOptionError(of_zookeeper[0], "only views of ZooKeeper's files have it")
    return _source_of_logs(logs, view, given, processes, values)


def tables_of(places: Places) -> list[str]:
    """Return the names of the tables that paths have."""
    of_zookeeper = ZOOKEEPER_TABLES if places.zookeeper else ()
    return sorted({*of_zookeeper, *(TABLES if places.logs else ())})


def _source_of_logs(
    paths: Sequence[str],
    view: str,
    given: Mapping[str, Any],
    processes: int | None,
    values: ValueOptions,
) -> Source:
    texts = {**given, "paths": json.dumps(list(paths))}
    if view in QUESTION_TABLES:
        return QuestionSource(view, read_options(texts), processes)
    source = ViewSource(read_options({**texts, "view": view}), processes)
    is_decoded = values != NO_VALUES and view == View.RECORDS.value
    return DecodedSource(source, values) if is_decoded else source


class TableDataset(pads.Dataset):  # type: ignore[misc]
    """A data set that is read again for each scan. `on_error` gets what a scan raises: a library in
    C passes on its text only."""

    def __init__(
        self,
        schema: pa.Schema,
        make_reader: MakeReader,
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        # Dataset's own constructor refuses to be called.
        self._given_schema = schema
        self._make_reader = make_reader
        self._on_error = on_error

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._given_schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_: Any,
    ) -> TableScanner:
        """Return what reads these columns of the rows that pass the filter. Other arguments are
        hints that change no row."""
        try:
            reader = self._make_reader(columns, filter)
        except Exception as error:
            self._on_error(error)
            raise
        return TableScanner(_noting(reader, self._on_error))

    def __reduce__(self) -> tuple[object, ...]:
        return (TableDataset, (self._given_schema, self._make_reader, self._on_error))


class TableScanner:
    """One read of a table, which can be taken once, in one of these forms."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as they come."""
        return self._reader

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they come."""
        yield from self._reader

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self._reader.read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        found, left = [], num_rows
        with closing(self._reader):
            for batch in self._reader:
                found.append(batch.slice(0, left))
                left -= len(found[-1])
                if not left:
                    break
        return pa.Table.from_batches(found, self._reader.schema)

    def count_rows(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self._reader))


def _noting(
    reader: pa.RecordBatchReader, on_error: Callable[[Exception], None]
) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            on_error(error)
            raise

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
