"""View `records` with its values decoded, by the processes that read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.tables.decoded_values import VALUE, VALUE_FORMATS, DecodedType, decoded_type
from kafkalog.tables.filters import Filter
from kafkalog.tables.view_source import ViewSource

# The fields are those of so many values of each topic, and of so many topics.
_SAMPLE, _MOST_TOPICS = 1000, 200


class DecodedSource:
    """View `records` with columns value_decoded and value_error."""

    def __init__(self, records: ViewSource, value_format: str) -> None:
        """Raises OptionError for a format that is none, and where the columns lack the value."""
        if value_format not in VALUE_FORMATS:
            raise OptionError("valueFormat", value_format, VALUE_FORMATS)
        if VALUE not in records.schema.names:
            raise RefusedOptionError("valueFormat", "column value has to be among the columns")
        self._records = records
        self._format = value_format

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the view, then the decoded ones. Reads the sample."""
        return pa.schema([*self._records.schema, *self._decoded.fields])

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        self._records.refuse_early()

    def batches(self, columns: Sequence[str], given: Filter) -> Iterator[pa.RecordBatch]:
        """Return an iterator of these columns of the rows that pass the filter."""
        added = {field.name for field in self._decoded.fields}
        if not added & {*columns, *given.columns}:
            return self._records.batches(columns, given)
        return self._records.batches(columns, given, self._decoded)

    @cached_property
    def _decoded(self) -> DecodedType:
        return decoded_type(self._format, self._sample() if self._format == "json" else ())

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
