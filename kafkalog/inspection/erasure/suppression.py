"""Records of erased persons left out wherever an older copy is read: exports, and restored logs.

The file is that of `kafkalog erase --identifiers`. Rule: docs/erasure.md F1124.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kafkalog.errors import OptionError
from kafkalog.inspection.erasure.file_search import Wanted
from kafkalog.inspection.erasure.identifiers import of_lines
from kafkalog.inspection.erasure.input_files import input_files
from kafkalog.inspection.erasure.registered_values import decoders_for
from kafkalog.words import counted


@dataclass(frozen=True, slots=True)
class Suppression:
    """What is looked for, as `kafkalog erase` does: the records that have it are left out."""

    wanted: Wanted

    @classmethod
    def of_file(cls, option: str, path: str) -> Suppression:
        """Read a file of identifiers. Raises OptionError."""
        try:
            with open(path, "rb") as file:
                return cls(Wanted(of_lines(option, file)))
        except OSError as error:
            allowed = f"a file that can be read ({error.strerror})"
            raise OptionError(option, path, allowed) from error

    def decoding(self, paths: Sequence[str], schema_registry: str | None = None) -> Suppression:
        """Return one that also decodes keys and values, by the registry that `schema_registry`
        names, or else by `_schemas` below the paths (F1262). Raises RefusedOptionError for a
        registry that cannot be read, LogDirError for a path without files."""
        entries = (entry for path in paths for entry in input_files(path))
        decoders = decoders_for(schema_registry, entries)
        return Suppression(replace(self.wanted, decoders=decoders))

    def kept(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
        """Return records, which have the columns key, value and headers, without the suppressed;
        and how many have a key or a value that something is looked for in at a path, and that
        nothing decodes: they are kept."""
        matcher = self.wanted.matcher()
        found = matcher.matches(records)
        kept = records.filter(pa.array(~found)) if found.any() else records
        return kept, matcher.undecoded


def undecoded_words(topic: str, count: int) -> str:
    """Return how many keys and values of a topic are kept because nothing decodes them."""
    return (
        f"{topic}: {counted(count, 'value')} not decoded, in which --suppress looks at a path: "
        "kept, and they may be the person's"
    )
