"""Records of erased persons left out wherever an older copy is read: exports, and restored logs.

The file is that of `kafkalog erase --identifiers`. Rule: docs/erasure.md F1124.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.errors import OptionError
from kafkalog.format.batch_header import read_header
from kafkalog.format.erased_batch import without_records
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.inspection.erasure.identifiers import Identifier, of_lines
from kafkalog.inspection.erasure.record_matching import RecordMatcher

_COLUMNS = ("key", "value", "headers")


@dataclass(frozen=True, slots=True)
class Suppression:
    """The identifiers of persons whose records are left out."""

    identifiers: tuple[Identifier, ...]

    @classmethod
    def of_file(cls, option: str, path: str) -> Suppression:
        """Read a file of identifiers. Raises OptionError."""
        try:
            with open(path, "rb") as file:
                return cls(tuple(of_lines(option, file)))
        except OSError as error:
            allowed = f"a file that can be read ({error.strerror})"
            raise OptionError(option, path, allowed) from error

    def kept(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
        """Return records, which have the columns key, value and headers, without the suppressed;
        and how many have a key or a value that something is looked for in at a path, and that
        nothing decodes: they are kept."""
        matcher = RecordMatcher(self.identifiers)
        found = matcher.matches(records)
        kept = records.filter(pa.array(~found)) if found.any() else records
        return kept, matcher.undecoded

    def batch_without(self, batch: bytes) -> tuple[bytes, int]:
        """Return a sound batch of any format without the suppressed records, all other bytes as
        they were, and how many there were: for those who write logs again, such as a restored one.

        The batch keeps its offsets; b"" is left of a message of format 0 or 1. Control batches stay
        as they are. Raises CorruptDataError for one whose records cannot be read.
        """
        if read_header(batch, 0).is_control:
            return batch, 0
        records = read_batch(batch, 0)
        found = np.flatnonzero(RecordMatcher(self.identifiers).matches(_as_columns(records)))
        if not len(found):
            return batch, 0
        erased = {records[row].offset for row in found.tolist()}
        return without_records(batch, erased), len(erased)


def _as_columns(records: Sequence[Record]) -> pa.RecordBatch:
    headers = [[{"key": name, "value": value} for name, value in each.headers] for each in records]
    columns = {
        "key": [each.key for each in records],
        "value": [each.value for each in records],
        "headers": headers,
    }
    return pa.RecordBatch.from_pydict(columns, schema=record_schema(_COLUMNS))
