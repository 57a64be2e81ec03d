"""Which rows of groups are chosen by the names of groups and topics, and of how many groups."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import distinct_rows, fixed_width
from kafkalog.coordination.groups.lag_question import ChosenNames, FoundNames, is_chosen

_DIGEST_BYTES = 16


def chosen_rows(rows: pa.Table, names: ChosenNames) -> pa.Table:
    """Return the rows whose group and topic are chosen."""
    by_group = _by_name(rows, "group_id", names.groups, names.group_pattern)
    return _by_name(by_group, "topic", names.topics, names.topic_pattern)


def found_names(rows: pa.Table | pa.RecordBatch, names: ChosenNames) -> FoundNames:
    """Return which of the names rows have."""
    return FoundNames(
        *(_found(rows, "group_id", names.groups), _found(rows, "topic", names.topics))
    )


def group_digests(rows: pa.Table) -> bytes:
    """Return the digests of the groups that rows are of, 16 bytes each."""
    keys = rows.select(["cluster_id", "group_id"])
    _, firsts = distinct_rows(keys)
    found = keys.take(fixed_width(firsts, pa.int64())).to_pydict()
    return b"".join(
        blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
        for key in zip(found["cluster_id"], found["group_id"], strict=True)
    )


def group_count(digests: bytes) -> int:
    """Return how many groups these are the digests of."""
    return len(np.unique(np.frombuffer(digests, dtype=f"V{_DIGEST_BYTES}")))


def _by_name(rows: pa.Table, column: str, names: frozenset[str], pattern: str | None) -> pa.Table:
    if not names and pattern is None:
        return rows
    coded = rows[column].combine_chunks().dictionary_encode()
    mask = np.array(
        [is_chosen(name, names, pattern) for name in coded.dictionary.to_pylist()], dtype=np.bool_
    )
    return rows.filter(fixed_width(mask, pa.bool_()).take(coded.indices))


def _found(rows: pa.Table | pa.RecordBatch, column: str, names: frozenset[str]) -> frozenset[str]:
    return names & set(pc.unique(rows[column]).to_pylist()) if names else frozenset()
