"""Records of erased persons left out wherever an older copy is read: exports, and restored logs.

The file is that of `kafkalog erase --identifiers`. Rule: docs/erasure.md F1124.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kafkalog.errors import OptionError
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
