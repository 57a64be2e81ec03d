"""View `records` with its values decoded, by the processes that read. What values in JSON become is
found by a sample of them: each field has the type that its values have. Rule: docs/sql.md F1072."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_type
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.messages.payload_formats import JsonFormat, PayloadFormat
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.tables.filters import Filter
from kafkalog.tables.view_source import VALUE, ViewSource

if TYPE_CHECKING:
    from kafkalog.lake.decoding.decoding_requests import DecodingRequest
    from kafkalog.lake.decoding.payload_arrays import PayloadDecoder

JSON = "json"
# The fields are those of so many values of each topic, and of so many topics.
_SAMPLE, _MOST_TOPICS = 1000, 200
_MISFIT = "JSON, but not of the fields that a sample shows"
_OTHER_SUBJECT = "its schema is of none of the subjects that a sample shows"
# Null, in the JSON form of Spark's types: what a sample without any value shows.
_NOTHING = "void"


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """How values are decoded, by the options of the same names."""

    value_format: str | None = None
    value_schema: str | None = None
    value_message: str | None = None
    value_schema_id: int | None = None
    schemas_topic: str | None = None
    schema_registry: str | None = None

    def request(self, paths: Sequence[str], mode: str) -> DecodingRequest | None:
        """Return what is requested, None for JSON without a schema. Raises OptionError, and
        LogDirError for a topic of schemas that cannot be read."""
        from kafkalog.lake.decoding.decoding_requests import (
            DecodingOptions,
            PayloadKind,
            decoding_requests,
        )

        if self == ValueOptions(JSON):
            return None
        if self.value_format is None:
            raise OptionError("--value-format", None, [kind.value for kind in PayloadKind])
        (request,) = decoding_requests(DecodingOptions(**asdict(self)), paths, mode)
        return request


class DecodedSource:
    """View `records` with value_decoded, value_error and, of Confluent's formats, the schema id."""

    def __init__(self, records: ViewSource, given: ValueOptions) -> None:
        """Raises OptionError for options that cannot be used, and where the columns lack the
        value."""
        if VALUE not in records.schema.names:
            raise RefusedOptionError("valueFormat", "column value has to be among the columns")
        self._records = records
        self._request = given.request(records.options.paths, records.options.mode.value)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the view, then the decoded ones. Reads the sample."""
        return pa.schema([*self._records.schema, *self._added])

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        self._records.refuse_early()

    def batches(self, columns: Sequence[str], given: Filter) -> Iterator[pa.RecordBatch]:
        """Return an iterator of these columns of the rows that pass the filter."""
        if not {field.name for field in self._added} & {*columns, *given.columns}:
            return self._records.batches(columns, given)
        return self._records.batches(columns, given, self._decoder)

    @cached_property
    def _added(self) -> list[pa.Field]:
        return [pa.field(name, arrow_type(kind)) for name, kind in self._decoder.types.items()]

    @cached_property
    def _decoder(self) -> PayloadDecoder:
        from kafkalog.lake.decoding.local_decoding import payload_decoder
        from kafkalog.lake.decoding.payload_arrays import PayloadDecoder

        if self._request is None:
            found = JsonFormat(json.dumps(sampled_type(self._sample())))
            return PayloadDecoder(VALUE, found, _MISFIT)
        return payload_decoder(self._request, self._format(self._request))

    def _format(self, request: DecodingRequest) -> PayloadFormat:
        from kafkalog.lake.decoding.local_decoding import format_choice, registry_choice
        from kafkalog.lake.decoding.payload_arrays import schema_id

        if not request.kind.is_confluent:
            return format_choice(request)(())
        choice = registry_choice(request)
        ids = {found for each in self._sample() if (found := schema_id(each)) is not None}
        # A later value can have any version of the same subjects.
        related = choice.with_versions(ids)
        chosen = choice.chosen(sorted(related))
        others = dict.fromkeys(choice.known() - related, _OTHER_SUBJECT)
        return replace(chosen, refused={**others, **chosen.refused})

    def _sample(self) -> Iterator[bytes | None]:
        names = [each for each in self._records.topics() if each not in INTERNAL_TOPICS]
        for name in names[:_MOST_TOPICS]:
            of_topic = Filter(pc.field("topic") == name, self._records.whole_schema)
            left = _SAMPLE
            for batch in self._records.batches([VALUE], of_topic, processes=1):
                yield from batch.column(0).slice(0, left).to_pylist()
                left -= len(batch)
                if left <= 0:
                    break


def sampled_type(sample: Iterable[bytes | None]) -> Any:
    """Return what values become, in the JSON form of Spark's types: text, where the sample has no
    JSON. A field whose values in the sample have types that no type holds is left out."""
    found: Any = _NOTHING
    for value in sample:
        try:
            found = _merged(found, _json_type(json.loads(value or b"null")))
        except (ValueError, RecursionError):
            continue
    known = _known(found)
    return "string" if known is None else known


def _json_type(value: Any) -> Any:
    """Return the type of a value of JSON in the JSON form of Spark's types."""
    if isinstance(value, dict):
        fields = [_field(name, _json_type(each)) for name, each in value.items()]
        return {"type": "struct", "fields": fields}
    if isinstance(value, list):
        element: Any = _NOTHING
        for each in value:
            element = _merged(element, _json_type(each))
        return {"type": "array", "elementType": element, "containsNull": True}
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if -(2**63) <= value < 2**63 else _MIXED
    return "double" if isinstance(value, float) else "string"


_MIXED = "mixed"


def _field(name: str, spark_type: Any) -> dict[str, Any]:
    return {"name": name, "type": spark_type, "nullable": True, "metadata": {}}


def _merged(ours: Any, theirs: Any) -> Any:
    """Return a type that holds the values of both, _MIXED where there is none."""
    if _NOTHING in (ours, theirs):
        return theirs if ours == _NOTHING else ours
    kinds = [each if isinstance(each, str) else each["type"] for each in (ours, theirs)]
    if kinds == ["struct", "struct"]:
        of_both = {each["name"]: each["type"] for each in ours["fields"]}
        for each in theirs["fields"]:
            name = each["name"]
            of_both[name] = _merged(of_both.get(name, _NOTHING), each["type"])
        return {**ours, "fields": [_field(name, kind) for name, kind in of_both.items()]}
    if kinds == ["array", "array"]:
        return {**ours, "elementType": _merged(ours["elementType"], theirs["elementType"])}
    if set(kinds) == {"long", "double"}:
        return "double"
    return ours if ours == theirs else _MIXED


def _known(spark_type: Any) -> Any:
    """Return a type without the fields of which no value or no one type is known, None if nothing
    is left."""
    if isinstance(spark_type, str):
        return None if spark_type in (_NOTHING, _MIXED) else spark_type
    if spark_type["type"] == "array":
        element = _known(spark_type["elementType"])
        return None if element is None else {**spark_type, "elementType": element}
    fields = [(each["name"], _known(each["type"])) for each in spark_type["fields"]]
    known = [_field(name, kind) for name, kind in fields if kind is not None]
    return {**spark_type, "fields": known} if known else None
