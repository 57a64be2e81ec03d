"""What each release of Kafka makes and reads: metadata versions and levels of features.

The tables are schemas/releases, written from Kafka's own classes. A new cluster of a release has
the features that kafka-storage's `version-mapping` prints.

Rules: docs/format.md F923, F1010, F1011 and F1198.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from kafkalog.errors import OptionError
from kafkalog.resources import resource

METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
GROUP_VERSION, SHARE_VERSION = "group.version", "share.version"
STREAMS_VERSION, TRANSACTION_VERSION = "streams.version", "transaction.version"
ELR_VERSION = "eligible.leader.replicas.version"
_FEATURES = (
    *(METADATA_VERSION, TRANSACTION_VERSION, GROUP_VERSION, ELR_VERSION),
    *(SHARE_VERSION, STREAMS_VERSION),
)
A_VERSION = "a version such as 4.4 or 3.9.2"
_FOLDER = ("schemas", "releases")
# Controllers of earlier releases were not for production.
_FIRST_LEVEL = 7
VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*")


class Levels(NamedTuple):
    """The levels of a feature that a release reads, both included."""

    least: int
    most: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.least <= level <= self.most


NO_LEVELS = Levels(0, 0)


@cache
def release_table(name: str) -> Any:
    """Return a file of schemas/releases: features, records, configs or plugins."""
    return json.loads(resource(*_FOLDER, f"{name}.json").read_text(encoding="utf-8"))


@cache
def metadata_versions() -> Mapping[int, str]:
    """Return the name of each metadata.version, such as 4.1-IV1, by its level."""
    found = release_table("features")["metadata_versions"]
    return {int(level): name for level, name in found.items()}


def metadata_version_name(level: int) -> str:
    """Return the name of a metadata.version; its number if it is not known."""
    return metadata_versions().get(level, str(level))


def release_of(metadata_version: int) -> str | None:
    """Return the release that made a metadata.version, such as 4.1; None if it is not known."""
    name = metadata_versions().get(metadata_version)
    return None if name is None else _made_by(name)


@cache
def read_releases() -> Mapping[str, Mapping[str, Levels]]:
    """Return the levels of features that releases read, by release: those whose classes the tables
    were written from, the earliest first."""
    found = release_table("features")["releases"]
    return {
        release: {feature: Levels(*bounds) for feature, bounds in of.items()}
        for release, of in found.items()
    }


def newest_release() -> str:
    """Return the newest release that is known."""
    return [*read_releases()][-1]


def known_release(kafka_version: str | None) -> str:
    """Return the release of a version such as 4.4.0 or 4.4; without one the newest. Raises
    OptionError if the tables do not have it."""
    if kafka_version is None:
        return newest_release()
    match = VERSION.fullmatch(kafka_version.strip())
    release = f"{match[1]}.{match[2]}" if match else ""
    if release not in read_releases():
        raise OptionError("--kafka", kafka_version, tuple(read_releases()))
    return release


def started_release(kafka_version: str | None) -> str:
    """Return the release of a version, whether or not the tables have it; without one the newest
    that they have. Raises OptionError for what is not a version."""
    if kafka_version is None:
        return newest_release()
    match = VERSION.fullmatch(kafka_version.strip())
    if match is None:
        raise OptionError("--kafka", kafka_version, A_VERSION)
    return f"{match[1]}.{match[2]}"


def nearest_release(release: str) -> str:
    """Return the release of the tables that stands for one: itself, the last before it, or the
    first of all."""
    earlier = [each for each in read_releases() if is_at_least(release, each)]
    return earlier[-1] if earlier else next(iter(read_releases()))


def is_at_least(release: str, other: str) -> bool:
    """Return whether a release is another one or a later one."""
    return _number(release) >= _number(other)


def is_plugin_of(release: str, name: str) -> bool:
    """Return whether a release of the tables has a class that settings of a broker can name."""
    found = release_table("plugins").get(name)
    return found is not None and is_at_least(release, found[0]) and is_at_least(found[1], release)


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def levels_of(release: str, feature: str) -> Levels:
    """Return the levels of a feature that a release reads: only 0, which stands for no feature,
    where it does not know the feature. Of a release that the tables do not have, its own metadata
    versions, and the other features of the last release before it."""
    nearest = nearest_release(release)
    found = read_releases()[nearest].get(feature, NO_LEVELS)
    if release == nearest:
        return found
    if feature == METADATA_VERSION:
        made = [
            n for n, name in metadata_versions().items() if is_at_least(release, _made_by(name))
        ]
        return Levels(found.least, max(made, default=0))
    return found if is_at_least(release, nearest) else NO_LEVELS


def _made_by(metadata_version_name: str) -> str:
    return metadata_version_name.partition("-")[0]


def least_release(features: Mapping[str, int]) -> str | None:
    """Return the earliest release that reads these levels of features; None without one."""
    return next(reading_releases(features), None)


def reading_releases(features: Mapping[str, int]) -> Iterator[str]:
    """Yield the releases that read these levels of features, the earliest first."""
    for release in read_releases():
        if all(level in levels_of(release, name) for name, level in features.items()):
            yield release


@cache
def _levels() -> Mapping[str, Mapping[str, int]]:
    """Return the levels of a new cluster's features, by release."""
    last: dict[str, int] = {}
    most = levels_of(newest_release(), METADATA_VERSION).most
    for level, name in metadata_versions().items():
        if _FIRST_LEVEL <= level <= most:
            last[_made_by(name)] = level
    return {release: _levels_at(level) for release, level in last.items()}


def _levels_at(metadata_version: int) -> dict[str, int]:
    found = {METADATA_VERSION: metadata_version}
    made = release_table("features")["levels"]
    for feature in _FEATURES[1:]:
        levels = [int(n) for n, first in made[feature].items() if first <= metadata_version]
        if levels:
            found[feature] = max(levels)
    return found


def made_releases() -> tuple[str, ...]:
    """Return the releases whose new clusters are known, the earliest first."""
    return tuple(_levels())


def features_of(release: str) -> dict[str, int]:
    """Return the levels of a release of `made_releases`, that of the metadata first: others depend
    on it."""
    return dict(_levels()[release])


def features_at(metadata_version: int) -> dict[str, int]:
    """Return the levels of the latest release whose metadata.version is not above one; none below
    that of the first."""
    levels = _levels()
    found = [each for each in levels if levels[each][METADATA_VERSION] <= metadata_version]
    return features_of(found[-1]) if found else {}


def earliest_release(needed: Mapping[str, int]) -> str:
    """Return the earliest release with these levels of features or higher ones; the last where none
    has them."""
    for release, levels in _levels().items():
        if all(levels.get(name, 0) >= level for name, level in needed.items()):
            return release
    return made_releases()[-1]
