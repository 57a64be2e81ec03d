"""Releases of Kafka and their features. Rules: docs/format.md F923, F1010, F1011 and F1198."""

import pytest

from kafkalog.coordination.metadata.releases import (
    features_at,
    features_of,
    known_release,
    least_release,
    levels_of,
    made_releases,
    nearest_release,
    newest_release,
    read_releases,
    release_of,
    started_release,
)
from kafkalog.errors import OptionError

# What `kafka-storage.sh version-mapping` of 4.4.0 and 4.3.1 print for these releases.
VERSION_MAPPING = {
    "3.3": {"metadata.version": 7},
    "3.9": {"metadata.version": 21},
    "4.0": {"metadata.version": 25, "transaction.version": 2, "group.version": 1},
    "4.1": {
        "metadata.version": 27,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
    },
    "4.3": {
        "metadata.version": 30,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    },
    "4.4": {
        "metadata.version": 33,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 2,
        "streams.version": 1,
    },
}


@pytest.mark.parametrize("release", VERSION_MAPPING)
def test_a_new_cluster_has_these_features(release: str) -> None:
    # F923.
    assert features_of(release) == VERSION_MAPPING[release]
    assert features_at(VERSION_MAPPING[release]["metadata.version"]) == VERSION_MAPPING[release]


def test_releases_are_in_their_order() -> None:
    assert made_releases()[0] == "3.3"
    assert [*read_releases()] == [*made_releases()[-6:]]
    assert newest_release() == made_releases()[-1] == "4.4"


def test_a_metadata_version_names_its_release() -> None:
    # F1010.
    assert [release_of(level) for level in (7, 21, 27, 33, 999)] == [
        *("3.3", "3.9", "4.1", "4.4", None)
    ]


def test_the_least_release_reads_all_features() -> None:
    # F1010 and F1011.
    assert least_release({"metadata.version": 6}) == "3.9"
    assert least_release({"metadata.version": 22}) == "4.0"
    assert least_release({"metadata.version": 22, "share.version": 1}) == "4.1"
    assert least_release({"metadata.version": 22, "share.version": 2}) == "4.4"
    assert least_release({"metadata.version": 99}) is None
    assert 1 not in levels_of("3.9", "group.version")
    assert 0 in levels_of("3.9", "group.version")


def test_a_version_names_its_release() -> None:
    assert [known_release(each) for each in ("4.1", "4.1.0", " 3.9.2 ", None)] == [
        *("4.1", "4.1", "3.9", "4.4")
    ]
    for unknown in ("5.0", "2.8.2", "four", ""):
        with pytest.raises(OptionError, match=r"--kafka: .*expected one of 3\.9, 4\.0"):
            known_release(unknown)


@pytest.mark.parametrize(
    ("version", "release", "nearest"),
    [
        *(("3.3.2", "3.3", "3.9"), ("0.10.2.1", "0.10", "3.9"), ("4.1.1", "4.1", "4.1")),
        *(("3.9", "3.9", "3.9"), ("4.5.0", "4.5", "4.4"), (None, "4.4", "4.4")),
    ],
)
def test_a_release_without_a_table_is_judged_by_the_nearest(
    version: str | None, release: str, nearest: str
) -> None:
    # F1198.
    assert started_release(version) == release
    assert nearest_release(release) == nearest


@pytest.mark.parametrize(("release", "most"), [("3.3", 7), ("3.5", 11)])
def test_a_release_without_a_table_reads_its_own_metadata_versions(release: str, most: int) -> None:
    # F1198: MetadataVersion.latest() and MINIMUM_KRAFT_VERSION of 3.3.2 and 3.5.2.
    assert levels_of(release, "metadata.version") == (1, most)
    assert levels_of(release, "kraft.version") == (0, 0)


def test_what_is_not_a_version_is_refused() -> None:
    for text in ("four", "", "4", "4.x"):
        with pytest.raises(OptionError, match=r"--kafka: .*a version such as"):
            started_release(text)
