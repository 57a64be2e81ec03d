"""A commit of Delta on a disk of this machine is forced to that disk. Rule: F955."""

import errno
import os
from pathlib import Path

import pytest

from kafkalog.spark.delta_commit import _flush_commit


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_commit_that_a_disk_does_not_keep_is_an_error_of_its_file(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = tmp_path / "_delta_log" / f"{7:020d}.json"
    commit.parent.mkdir()
    commit.touch()

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match=f"Input/output error: '{commit}'"):
        _flush_commit(form.format(tmp_path), 7)


@pytest.mark.parametrize("location", ["s3a://lake/table", "dbfs:/lake/table", "/nowhere/table"])
def test_a_commit_elsewhere_is_left_to_its_store(location: str) -> None:
    _flush_commit(location, 7)
