"""What paths are URIs, and what they name."""

import os
from pathlib import Path

import pytest

from kafkalog.storage.files.uris import absolute_path, is_inside, is_remote, uri_parts


@pytest.mark.parametrize(
    "path", ["s3://b/p", "S3A://b", "gs://b/p", "abfss://c@a.dfs.core.windows.net/p", "hdfs:///p"]
)
def test_uris_are_remote(path: str) -> None:
    """F540."""
    assert is_remote(path)


@pytest.mark.parametrize(
    "path", ["/data", "data", "file:/data", "file:///data", "C:\\data", "a:b", "x://y"]
)
def test_paths_of_this_machine_are_not(path: str) -> None:
    """F540. A letter before the colon is a drive, not a scheme."""
    assert not is_remote(path)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("s3a://b/p/", "s3://b/p"),
        ("S3N://b", "s3://b"),
        ("gcs://b/p//", "gs://b/p"),
        ("hdfs://host:8020/p", "hdfs://host:8020/p"),
        ("s3://b/a%20b/c d", "s3://b/a%20b/c d"),
        ("file:///data/x/", "/data/x"),
        ("file:/data", "/data"),
        ("file://localhost/data", "/data"),
        ("data", os.path.join(os.getcwd(), "data")),
    ],
)
def test_each_place_is_written_in_one_way(path: str, written: str) -> None:
    """F540."""
    assert absolute_path(path) == written


def test_the_parts_of_a_uri() -> None:
    assert uri_parts("abfss://c@a.host/p/q") == ("abfss", "c@a.host", "p/q")
    assert uri_parts("hdfs:///p") == ("hdfs", "", "p")
    assert uri_parts("s3://b") == ("s3", "b", "")


def test_what_lies_inside_of_what(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_inside(f"{tmp_path}/link/x", f"{tmp_path}/real")
    assert is_inside("s3a://b/p/q", "s3://b/p")
    assert is_inside("s3://b/p", "s3://b/p/")
    assert not is_inside("s3://b/pq", "s3://b/p")
    assert not is_inside("/b/p", "s3://b/p")
    assert not is_inside("s3://b/p", "/")
