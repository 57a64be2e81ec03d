"""Restoring from tiered storage in a bucket, by its URI: docs/restore.md F1202."""

import hashlib
from pathlib import Path

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.remote.stores import Store, needs_store
from tests.support.repository import Unpack

pytestmark = needs_store


def restored(directory: Path, *paths: object) -> dict[str, bytes]:
    """The logs of applications' topics."""
    arguments = ["restore", *map(str, paths), "--to", str(directory)]
    result = CliRunner().invoke(kafkalog, arguments)
    assert result.exit_code == ExitCode.DONE, result.output
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in (directory / "data").glob("tier.*/*.log")
    }


def test_a_bucket_gives_what_a_folder_gives(store: Store, unpacked: Unpack, tmp_path: Path) -> None:
    disk = unpacked("tiered43.logs") / "log-dirs"
    folder = unpacked("tiered43.tiered") / "kafka-tiered-storage"
    uri, served = store.bucket(folder)
    before = hashes(served)
    expected = restored(tmp_path / "local", disk, folder)
    assert restored(tmp_path / "remote", disk, uri) == expected
    uri_of_disk, _ = store.bucket(disk)
    assert restored(tmp_path / "all", uri_of_disk, uri) == expected
    assert hashes(served) == before


def hashes(folder: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
