"""Which rows of groups are selected, by the names of groups and topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import distinct_rows, fixed_width
from kafkalog.words import name_suggestions

_DIGEST_BYTES = 16


class ChosenNames(NamedTuple):
    """The names given of groups and of topics, and a regular expression of each; without any, all
    names are chosen."""

    groups: frozenset[str] = frozenset()
    group_pattern: str | None = None
    topics: frozenset[str] = frozenset()
    topic_pattern: str | None = None

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows whose group and topic are chosen."""
        by_group = _by_name(rows, "group_id", self.groups, self.group_pattern)
        return _by_name(by_group, "topic", self.topics, self.topic_pattern)

    def has(self, group_id: str | None, topic: str | None) -> bool:
        """Return whether a group and a topic are chosen."""
        return is_chosen(group_id, self.groups, self.group_pattern) and is_chosen(
            topic, self.topics, self.topic_pattern
        )

    @property
    def is_group(self) -> Callable[[str], bool] | None:
        """Says of a group whether it is chosen; None where all are."""
        return _choice(self.groups, self.group_pattern)

    @property
    def is_topic(self) -> Callable[[str], bool] | None:
        """Says of a topic whether it is chosen; None where all are."""
        return _choice(self.topics, self.topic_pattern)

    def words_without(
        self, found: FoundNames, everything: Callable[[], Collection[Mapping[str, Any]]]
    ) -> list[str]:
        """Return what `missing_words` does, given the names that rows have; `everything` is called
        where one has none."""
        if self.groups <= found.groups and self.topics <= found.topics:
            return []
        groups = [{"group_id": group, "topic": None} for group in found.groups]
        topics = [{"group_id": None, "topic": topic} for topic in found.topics]
        return self.missing_words(everything(), [*groups, *topics])

    def missing_words(
        self, everything: Collection[Mapping[str, Any]], chosen: Collection[Mapping[str, Any]]
    ) -> list[str]:
        """Return a line for each given name that no chosen row has, with the names in
        `everything` that are like it."""
        columns = (("--group", "group_id", self.groups), ("--topic", "topic", self.topics))
        return [
            f"no rows of {option} {name}{_why_missing(name, column, everything)}"
            for option, column, names in columns
            for name in sorted(names - {row[column] for row in chosen})
        ]

    def found_in(self, rows: pa.Table | pa.RecordBatch) -> FoundNames:
        """Return which of the names rows have."""
        return FoundNames(
            *(_found(rows, "group_id", self.groups), _found(rows, "topic", self.topics))
        )


class FoundNames(NamedTuple):
    """Those names of groups and topics that rows have, of the names given."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()


def all_names(found: Iterable[FoundNames]) -> FoundNames:
    """Return the names that some rows have."""
    each = list(found)
    return FoundNames(
        frozenset().union(*(names.groups for names in each)),
        frozenset().union(*(names.topics for names in each)),
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


def _why_missing(name: str, column: str, everything: Iterable[Mapping[str, Any]]) -> str:
    present = sorted({row[column] for row in everything if row[column] is not None})
    if name in present:
        return ": other options exclude it"
    return f"; in the input: {name_suggestions([name], present)}"


def _choice(names: frozenset[str], pattern: str | None) -> Callable[[str], bool] | None:
    if not names and pattern is None:
        return None
    return partial(is_chosen, names=names, pattern=pattern)


def is_chosen(name: str | None, names: frozenset[str], pattern: str | None) -> bool:
    """Return whether a name is one of `names`, or the pattern is found in it. Without names and a
    pattern all are chosen, None too."""
    if not names and pattern is None:
        return True
    if name is None:
        return False
    return name in names or (pattern is not None and re.search(pattern, name) is not None)


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
