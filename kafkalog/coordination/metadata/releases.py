"""The features of a new cluster by the release of Kafka that makes it, as kafka-storage's
`version-mapping` prints them. Rule: docs/format.md F923.
"""

from __future__ import annotations

from collections.abc import Mapping

METADATA_VERSION = "metadata.version"
GROUP_VERSION, SHARE_VERSION = "group.version", "share.version"
STREAMS_VERSION, TRANSACTION_VERSION = "streams.version", "transaction.version"
ELR_VERSION = "eligible.leader.replicas.version"
_FEATURES = (
    *(METADATA_VERSION, TRANSACTION_VERSION, GROUP_VERSION, ELR_VERSION),
    *(SHARE_VERSION, STREAMS_VERSION),
)
# In the order of _FEATURES; a feature of level 0 is not written.
_LEVELS = {
    "3.3": (7, 0, 0, 0, 0, 0),
    "3.4": (8, 0, 0, 0, 0, 0),
    "3.5": (11, 0, 0, 0, 0, 0),
    "3.6": (14, 0, 0, 0, 0, 0),
    "3.7": (19, 0, 0, 0, 0, 0),
    "3.8": (20, 0, 0, 0, 0, 0),
    "3.9": (21, 0, 0, 0, 0, 0),
    "4.0": (25, 2, 1, 0, 0, 0),
    "4.1": (27, 2, 1, 1, 0, 0),
    "4.2": (29, 2, 1, 1, 1, 1),
    "4.3": (30, 2, 1, 1, 1, 1),
    "4.4": (33, 2, 1, 1, 2, 1),
}
RELEASES = tuple(_LEVELS)


def features_of(release: str) -> dict[str, int]:
    """Return the levels of a release of RELEASES, that of the metadata first: others depend on
    it."""
    levels = zip(_FEATURES, _LEVELS[release], strict=True)
    return {name: level for name, level in levels if level}


def features_at(metadata_version: int) -> dict[str, int]:
    """Return the levels of the latest release whose metadata.version is not above one; none below
    that of the first."""
    found = [each for each in RELEASES if _LEVELS[each][0] <= metadata_version]
    return features_of(found[-1]) if found else {}


def earliest_release(needed: Mapping[str, int]) -> str:
    """Return the earliest release with these levels of features or higher ones; the last where none
    has them."""
    for release in RELEASES:
        levels = features_of(release)
        if all(levels.get(name, 0) >= level for name, level in needed.items()):
            return release
    return RELEASES[-1]
