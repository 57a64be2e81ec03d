"""Iceberg catalogs, and the tables that a run creates in them.

Catalogs come from pyiceberg's own configuration; without one, a directory on this machine has a
catalog in SQLite. Reasons: docs/decisions/0028.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, list_catalogs, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, Transform
from sqlalchemy.exc import SQLAlchemyError

from kafkalog.columns.arrow_types import arrow_fields
from kafkalog.errors import OptionError, StatePositionError, UnsupportedFormatError
from kafkalog.lake.decoded_columns import Field
from kafkalog.lake.iceberg.synced_files import write_synced
from kafkalog.lake.layout import (
    DEFAULT_NAMESPACE,
    TARGET_FILE_BYTES,
    Compression,
    PartitionBy,
    TableLayout,
)
from kafkalog.lake.table_writer import columns_with_statistics
from kafkalog.schemas import table_fields
from kafkalog.storage.files.file_access import file_access
from kafkalog.storage.files.output_files import make_directories
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.table_formats import CATALOG_FILE

_CODEC = TableProperties.PARQUET_COMPRESSION
_LEVEL = TableProperties.PARQUET_COMPRESSION_LEVEL
_FILE_BYTES = TableProperties.WRITE_TARGET_FILE_SIZE_BYTES
# The property with the columns of decoded keys and values, in the JSON form of Spark's types.
_DECODED = "kafkalog.decoded"
_SORTED_BY = ("topic", "partition", "offset")
_SOURCE_OF: dict[PartitionBy, tuple[str, Transform[Any, Any], str]] = {
    PartitionBy.TOPIC: ("topic", IdentityTransform(), "topic"),
    PartitionBy.DAY: ("timestamp", DayTransform(), "timestamp_day"),
    PartitionBy.HOUR: ("timestamp", HourTransform(), "timestamp_hour"),
}
# Of settings `storage.*` and of pyiceberg.
_S3_SETTINGS = {
    "endpointoverride": "s3.endpoint",
    "accesskey": "s3.access-key-id",
    "secretkey": "s3.secret-access-key",
    "sessiontoken": "s3.session-token",
    "region": "s3.region",
}
# pyiceberg does not look for these itself.
_VARIABLES = {
    "AWS_ENDPOINT_URL_S3": "s3.endpoint",
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_REGION": "s3.region",
    "AWS_DEFAULT_REGION": "s3.region",
}
# Of REST, Glue and Hive: modules that not every installation has.
_CLIENT_ERRORS = {
    "requests.exceptions": ("RequestException",),
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "thrift.Thrift": ("TException",),
}


def opened_catalog(catalog: str | None, output_dir: str | None) -> Catalog:
    """Return the catalog of that name in pyiceberg's configuration, or the one of a directory.

    Raises OptionError for a catalog that is not configured and for a directory in an object store,
    OSError for a directory that cannot be written.
    """
    if catalog is None:
        return _catalog_of(output_dir or "")
    try:
        opened = load_catalog(catalog)
    except (ValueError, NotInstalledError) as error:
        known = ", ".join(sorted(list_catalogs())) or "none"
        allowed = f"a catalog of .pyiceberg.yaml or PYICEBERG_CATALOG__*, there: {known} ({error})"
        raise OptionError("--catalog", catalog, allowed) from None
    for name, value in _storage_properties():
        opened.properties.setdefault(name, value)
    return write_synced(opened)


def has_catalog(catalog: str | None, output_dir: str | None) -> bool:
    """Return whether there can be tables; a directory without a catalog is not made by looking."""
    return catalog is not None or os.path.exists(_catalog_path(output_dir or ""))


def _catalog_path(output_dir: str) -> str:
    directory = absolute_path(output_dir)
    if is_remote(directory):
        raise OptionError(
            "--output-dir",
            output_dir,
            "a local directory; Iceberg tables in an object store need --catalog NAME in its "
            "place, a catalog of .pyiceberg.yaml",
        )
    if set("?#%") & set(directory):
        raise OptionError("--output-dir", output_dir, "a path without ?, # and % for Iceberg")
    return os.path.join(directory, CATALOG_FILE)


def _catalog_of(output_dir: str) -> Catalog:
    path = _catalog_path(output_dir)
    directory = os.path.dirname(path)
    make_directories(directory, os.fsync)
    try:
        catalog = SqlCatalog("kafkalog", uri=f"sqlite:///{path}", warehouse=f"file://{directory}")
    except SQLAlchemyError as error:
        raise OSError(f"{path}: the catalog cannot be opened: {error.__cause__ or error}") from None
    return write_synced(catalog)


def _storage_properties() -> Iterator[tuple[str, str]]:
    """Yield what pyiceberg has to know to reach the store that the tasks write to."""
    for key, value in file_access().settings().items():
        if key.replace("_", "") in _S3_SETTINGS:
            yield _S3_SETTINGS[key.replace("_", "")], value
    for variable, name in _VARIABLES.items():
        if os.environ.get(variable):
            yield name, os.environ[variable]


def identifier(name: str) -> tuple[str, ...]:
    """Return a table's identifier from `namespace.name`, or a name in the default namespace.

    Raises OptionError for an empty part.
    """
    parts = tuple(name.split("."))
    if not all(parts):
        raise OptionError("--table", name, "namespace.name")
    return parts if len(parts) > 1 else (DEFAULT_NAMESPACE, name)


def loaded_table(catalog: Catalog, name: tuple[str, ...]) -> Table | None:
    """Return a table, None without it.

    Raises UnsupportedFormatError for one that is not Iceberg's: Hive and Glue have others too.
    """
    try:
        return catalog.load_table(name)
    except (NoSuchIcebergTableError, NoSuchPropertyException) as error:
        table = ".".join(name)
        raise UnsupportedFormatError(
            f"table {table}: the catalog has another table of that name, which is not Iceberg's "
            f"({error}): begin with another --table"
        ) from None
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


def created_table(
    catalog: Catalog,
    name: tuple[str, ...],
    table: str,
    layout: TableLayout | None = None,
    decoded: Sequence[Field] = (),
) -> Table:
    """Return a table, created with the columns of schemas/tables/<table>.json and those of decoded
    keys and values if it is missing.

    Raises OptionError where the catalog has no namespaces in others, and as `loaded_table` does.
    """
    found = loaded_table(catalog, name)
    if found is not None:
        return found
    try:
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(name[:-1])
    except ValueError:
        allowed = "namespace.name: this catalog has no namespaces in others"
        raise OptionError("--table", ".".join(name), allowed) from None
    schema = _schema([*table_fields(table), *decoded])
    properties: dict[str, str] = {}
    spec, order = PartitionSpec(), SortOrder()
    if layout is not None:
        properties = {**_properties(layout, schema), _DECODED: json.dumps(list(decoded))}
        spec = _partition_spec(schema, layout)
        order = SortOrder(
            *(
                SortField(schema.find_field(each).field_id, IdentityTransform())
                for each in _SORTED_BY
            )
        )
    try:
        return catalog.create_table(
            name, schema, partition_spec=spec, sort_order=order, properties=properties
        )
    except TableAlreadyExistsError:
        return catalog.load_table(name)


def decoded_columns(table: Table) -> list[Field]:
    """Return the columns of decoded keys and values that a table has."""
    found: list[Field] = json.loads(table.properties.get(_DECODED, "[]"))
    return found


def evolved(table: Table, decoded: Sequence[Field]) -> None:
    """Give a table these decoded columns, which are its own and more, or wider ones."""
    if list(decoded) == decoded_columns(table):
        return
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.union_by_name(_schema(decoded))
        properties = {_DECODED: json.dumps(list(decoded)), **_without_bounds(_schema(decoded))}
        transaction.set_properties(properties)


def table_layout(table: Table) -> TableLayout:
    """Return how the files of a table are written, which its first run has decided.

    Raises UnsupportedFormatError where another engine has partitioned it as tasks cannot write it.
    """
    schema, partition_by = table.schema(), []
    for field in table.spec().fields:
        source = schema.find_column_name(field.source_id), field.transform
        by = next((by for by, each in _SOURCE_OF.items() if each[:2] == source), None)
        if by is None:
            raise UnsupportedFormatError(
                f"table {'.'.join(table.name())} is partitioned by {field.transform} of column "
                f"{source[0]}: records are written by topic, day or hour"
            )
        partition_by.append(by)
    properties = table.properties
    codec = properties.get(_CODEC, Compression.ZSTD.value)
    level = properties.get(_LEVEL)
    return TableLayout(
        tuple(partition_by),
        int(properties.get(_FILE_BYTES, TARGET_FILE_BYTES)),
        next((each for each in Compression if _codec(each) == codec), Compression.ZSTD),
        None if level is None else int(level),
    )


def divided_by(layout: TableLayout) -> tuple[PartitionBy, ...]:
    """Return what Iceberg partitions by: hours are hours of a day, and it refuses both."""
    is_by_hour = PartitionBy.HOUR in layout.partition_by
    return tuple(by for by in layout.partition_by if by is not PartitionBy.DAY or not is_by_hour)


def _codec(compression: Compression) -> str:
    return "uncompressed" if compression is Compression.NONE else compression.value


@contextmanager
def catalog_errors(table: str) -> Iterator[None]:
    """Raise OSError for what a catalog answers, its client raises or a database reports."""
    try:
        yield
    except CommitStateUnknownException as error:
        raise StatePositionError(
            f"table {table}: it is not known whether the run was committed ({error}): run it again"
        ) from None
    except _reported_errors() as error:
        raise OSError(f"table {table}: the Iceberg catalog failed: {error}") from error


def _reported_errors() -> tuple[type[Exception], ...]:
    """Return what pyiceberg raises, and what it passes on of those clients that are loaded."""
    of_clients = (
        getattr(sys.modules[module], name)
        for module, names in _CLIENT_ERRORS.items()
        if module in sys.modules
        for name in names
    )
    return RESTError, SQLAlchemyError, NotInstalledError, *of_clients


def _schema(fields: Sequence[Field]) -> Schema:
    ids = count(1)
    return pyarrow_to_schema(
        pa.schema(
            [
                _with_id(arrow, ids, field["metadata"].get("comment"))
                for arrow, field in zip(arrow_fields(fields), fields, strict=True)
            ]
        )
    )


def _with_id(field: pa.Field, ids: Iterator[int], comment: str | None = None) -> pa.Field:
    metadata = {"PARQUET:field_id": str(next(ids))}
    data_type = field.type
    if pa.types.is_list(data_type):
        data_type = pa.list_(_with_id(data_type.value_field, ids))
    elif pa.types.is_struct(data_type):
        data_type = pa.struct([_with_id(each, ids) for each in data_type])
    elif pa.types.is_map(data_type):
        data_type = pa.map_(_with_id(data_type.key_field, ids), _with_id(data_type.item_field, ids))
    if comment:
        metadata["doc"] = comment
    return pa.field(field.name, data_type, field.nullable, metadata)


def _partition_spec(schema: Schema, layout: TableLayout) -> PartitionSpec:
    fields = []
    for number, by in enumerate(divided_by(layout), PARTITION_FIELD_ID_START):
        source, transform, name = _SOURCE_OF[by]
        fields.append(PartitionField(schema.find_field(source).field_id, number, transform, name))
    return PartitionSpec(*fields)


def _properties(layout: TableLayout, schema: Schema) -> dict[str, str]:
    """Return what other engines that write to the table have to keep, and which columns have
    bounds."""
    properties = {
        _CODEC: _codec(layout.compression),
        _FILE_BYTES: str(layout.target_file_bytes),
        # A topic's name is compared as a whole.
        "write.metadata.metrics.column.topic": "full",
        "commit.manifest-merge.enabled": "true",
        # A commit writes the metadata of all snapshots again: old copies are removed.
        "write.metadata.delete-after-commit.enabled": "true",
    }
    if layout.compression_level is not None:
        properties[_LEVEL] = str(layout.compression_level)
    return properties | _without_bounds(schema)


def _without_bounds(schema: Schema) -> dict[str, str]:
    """Return the properties of columns, and of their parts, that have no bounds in files."""
    described = columns_with_statistics(schema.as_arrow())
    return {
        f"write.metadata.metrics.column.{column}": "none"
        for column in schema.column_names
        if column not in described
    }
