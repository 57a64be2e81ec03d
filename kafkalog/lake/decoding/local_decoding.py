"""Keys and values of an export as columns, decoded by the processes that write it, without Spark.

Rules: docs/ingest.md F537, F538 and F935; docs/decoding.md F1270 to F1274.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.errors import SchemaError
from kafkalog.lake.decoded_columns import DecodedColumns, Field
from kafkalog.lake.decoding.avro_reader import AvroReader
from kafkalog.lake.decoding.ddl_types import ddl_type
from kafkalog.lake.decoding.decoded_fields import decoded_field, read_as, refuse_type
from kafkalog.lake.decoding.decoding_requests import (
    DecodingRequest,
    PayloadKind,
    TableDecodingOptions,
    descriptor_bytes,
    schema_text,
    unusable_schema,
)
from kafkalog.lake.decoding.payload_arrays import PayloadDecoder, schema_id
from kafkalog.lake.decoding.protobuf_reader import ProtobufReader
from kafkalog.lake.decoding.registered_schemas import (
    RegistryChoice,
    read_registry,
    records_of_schemas,
)
from kafkalog.lake.file_schemas import schema_with
from kafkalog.messages.json_schemas import json_schema_type
from kafkalog.messages.payload_formats import (
    ID_PREFIX_BYTES,
    AvroFormat,
    JsonFormat,
    PayloadFormat,
    ProtobufFormat,
    SchemaFormat,
    TextFormat,
)
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.parallel import all_results
from kafkalog.views.reading.reading import read_segment

# Chooses a column's format by the schema ids in the data.
IdChoice = Callable[[Sequence[int]], PayloadFormat]


class LocalDecoding:
    """Decodes the rows of an export. Call `columns` first, which chooses the formats."""

    def __init__(
        self,
        requests: Sequence[DecodingRequest],
        options: TableDecodingOptions,
        processes: int,
        *,
        is_for_faults: bool = False,
    ) -> None:
        """`is_for_faults` leaves out the rows in which everything is decoded. Raises OptionError
        for a schema that cannot be used."""
        self._requests = {request.column: request for request in requests}
        self._options = options
        self._processes = processes
        self._is_for_faults = is_for_faults
        self._choices = {request.column: format_choice(request) for request in requests}
        self._decoders: list[PayloadDecoder] = []

    def columns(
        self, options: ReadOptions, groups: Sequence[Sequence[SegmentRead]]
    ) -> DecodedColumns:
        """Return the columns that decoding adds. For Confluent's formats this reads the schema ids
        of all records.

        Raises OptionError where no id has a schema that can be used, and for a type that files
        cannot hold.
        """
        by_id = [each.column for each in self._requests.values() if each.kind.is_confluent]
        ids = _ids_in(options, groups, by_id, self._processes) if by_id else {}
        formats = {
            column: choice(sorted(ids.get(column, ()))) for column, choice in self._choices.items()
        }
        self._decoders = [
            payload_decoder(self._requests[column], found) for column, found in formats.items()
        ]
        fields = _added_fields(self._decoders, self._requests)
        return DecodedColumns(
            fields,
            self._options.evolving([*self._requests.values()]),
            {column: read_as(self._requests[column], found) for column, found in formats.items()},
        )

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with the decoded columns, and without the bytes of what is decoded if that was
        requested."""
        for batch in batches:
            rows = batch
            for decoder in self._decoders:
                rows = decoder.with_decoded(rows)
                if self._options.drop_decoded_bytes:
                    rows = _without_decoded(rows, decoder.column)
            yield self._faulty(rows) if self._is_for_faults else rows

    def _faulty(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        errors = [rows.column(f"{decoder.column}_error") for decoder in self._decoders]
        return rows.filter(reduce(pc.or_, map(pc.is_valid, errors)))


def decoded_rows(
    table: str, rows: pa.Table, choices: Sequence[tuple[DecodingRequest, IdChoice]]
) -> tuple[pa.Table, pa.Schema]:
    """Return rows of a table with the columns that decoding adds, and the schema of files that have
    them. Of Confluent's formats the ids in the rows decide; `choices` are those of `format_choice`.
    Raises OptionError as `LocalDecoding.columns` does."""
    decoders = []
    for request, choice in choices:
        payloads = rows.column(request.column).chunks if request.kind.is_confluent else ()
        ids = set().union(*map(ids_of, payloads))
        decoders.append(payload_decoder(request, choice(sorted(ids))))
    fields = _added_fields(decoders, {request.column: request for request, _ in choices})
    schema = schema_with(table, fields)
    batches = (
        reduce(lambda batch, decoder: decoder.with_decoded(batch), decoders, batch)
        for batch in rows.to_batches()
    )
    return pa.Table.from_batches(batches, schema.remove_metadata()), schema


def _added_fields(
    decoders: Iterable[PayloadDecoder], requests: Mapping[str, DecodingRequest]
) -> tuple[Field, ...]:
    """Return the columns that decoders add. Raises OptionError for a type that files cannot
    hold."""
    fields = tuple(
        decoded_field(name, spark_type)
        for decoder in decoders
        for name, spark_type in decoder.types.items()
    )
    for field in fields:
        refuse_type(requests, field)
    return fields


def _without_decoded(rows: pa.RecordBatch, column: str) -> pa.RecordBatch:
    errors = rows.column(f"{column}_error")
    place = rows.schema.get_field_index(column)
    kept = pc.if_else(pc.is_valid(errors), rows.column(place), pa.scalar(None, pa.binary()))
    return rows.set_column(place, rows.schema.field(place), kept)


def format_choice(request: DecodingRequest) -> IdChoice:
    """Return how the format of a column is chosen; what was given is checked now.

    Raises OptionError for what cannot be used.
    """
    given = None
    if request.schema is not None or request.kind is PayloadKind.STRING:
        try:
            given = _given_format(request)
        except SchemaError as error:
            raise unusable_schema(request, error) from error
    if given is not None and not request.kind.is_confluent:
        return lambda ids: given
    choice = registry_choice(request, given)
    return lambda ids: choice.chosen(list(ids))


def registry_choice(request: DecodingRequest, given: SchemaFormat | None = None) -> RegistryChoice:
    """Return what chooses by schema ids. Raises OptionError for a registry that cannot be read."""
    if given is None and request.schema is not None:
        given = _given_format(request)
    registry = read_registry(request, records_of_schemas)
    return RegistryChoice(request, registry, _check_avro, given)


def payload_decoder(request: DecodingRequest, found: PayloadFormat) -> PayloadDecoder:
    """Return what decodes a column. Raises OptionError for a schema that cannot be used."""
    try:
        return PayloadDecoder(request.column, found)
    except SchemaError as error:
        raise unusable_schema(request, error) from error


def _given_format(request: DecodingRequest) -> SchemaFormat:
    if request.kind is PayloadKind.STRING:
        return TextFormat()
    if request.kind.is_protobuf:
        found = ProtobufFormat(request.message or "", descriptor_bytes(request))
        ProtobufReader(found.message, found.descriptor)
        return found
    text = schema_text(request)
    if request.kind in (PayloadKind.JSON, PayloadKind.CONFLUENT_JSON):
        return JsonFormat(json.dumps(_json_type(text)))
    _check_avro(text)
    return AvroFormat(text, text)


def _check_avro(text: str) -> None:
    AvroReader(text, text)


def _json_type(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return ddl_type(text)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(str(error)) from error
    is_sparks = parsed.get("type") == "struct" and "fields" in parsed
    return parsed if is_sparks else json_schema_type(text, {})


def _ids_in(
    options: ReadOptions,
    groups: Sequence[Sequence[SegmentRead]],
    columns: Sequence[str],
    processes: int,
) -> Mapping[str, set[int]]:
    """Return the schema ids before the payloads of each column."""

    def found(reads: Sequence[SegmentRead]) -> dict[str, set[int]]:
        ids: dict[str, set[int]] = {column: set() for column in columns}
        for read in reads:
            for batch in read_segment(read, options, tuple(columns)):
                for column in columns:
                    ids[column] |= ids_of(batch.column(column))
        return ids

    every = all_results(
        found, groups, processes=processes, on_wait=lambda: None, on_failure=lambda done: None
    )
    return {column: set().union(*(each[column] for each in every)) for column in columns}


def ids_of(payloads: pa.Array) -> set[int]:
    """Return the schema ids before payloads."""
    prefixes = pc.unique(pc.binary_slice(payloads, 0, ID_PREFIX_BYTES)).to_pylist()
    return {found for each in prefixes if (found := schema_id(each)) is not None}
