"""Which types and versions of records in internal topics each release of Kafka reads.

Rule: docs/format.md F1012. The table is schemas/releases/records.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from kafkalog.coordination.metadata.releases import nearest_release, release_table


class ReadVersions(NamedTuple):
    """The versions of a record's value that a release reads, both included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@cache
def read_versions(topic: str, release: str) -> Mapping[int, ReadVersions]:
    """Return the versions that a release reads, by the number of the record's type; types that it
    does not know are missing. Of a release that the table does not have, those of the nearest."""
    release = nearest_release(release)
    found = {}
    for number, of in release_table("records")[topic].items():
        if release in of:
            first, _, last = of[release].partition("-")
            found[int(number)] = ReadVersions(int(first), int(last or first))
    return found


def first_reader(topic: str, record_type: int, version: int) -> str | None:
    """Return the earliest release that reads a version of a record; None if no known one does."""
    of = release_table("records").get(topic, {}).get(str(record_type), {})
    return next(
        (release for release in of if version in read_versions(topic, release)[record_type]), None
    )
