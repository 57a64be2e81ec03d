"""A disk that does not keep what was written: the run fails and names the file.

Rule: F955.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.output_files import write_file
from tests.support.repository import EXAMPLES, ROOT

# Runs a command; fsync fails for files and directories whose paths contain the first argument.
_RUN = """
import errno, os, sys
failing, flush = sys.argv.pop(1), os.fsync

def fsync(descriptor):
    if failing in os.readlink(f"/proc/self/fd/{descriptor}"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    flush(descriptor)

os.fsync = fsync
from kafkalog.command_line.main import main
main()
"""
LOG_DIR = str(EXAMPLES / "kafka-4.4")
EXPORT = ("export", LOG_DIR, "--output-dir", "new")
PARQUET, ICEBERG = ((*EXPORT, "--format", each) for each in ("parquet", "iceberg"))
SALVAGE = ("salvage", LOG_DIR, "--to", "new")
POSITIONS = (*EXPORT, "--starting-offsets-out", "positions.json")
DUMP = ("dump", LOG_DIR, "--deep", "--output", "records.txt")


def run(failing: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _RUN, failing, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("failing", "arguments"),
    [
        pytest.param(".parquet", ICEBERG, id="iceberg-data"),
        pytest.param("metadata.json", ICEBERG, id="iceberg-metadata"),
        pytest.param(".avro", ICEBERG, id="iceberg-manifests"),
        pytest.param("kafkalog/ingested_records", ICEBERG, id="iceberg-directories"),
        pytest.param(".pending", PARQUET, id="parquet"),
        pytest.param("new/", PARQUET, id="parquet-directories"),
        pytest.param("positions.json", POSITIONS, id="positions"),
        pytest.param("records.txt", DUMP, id="dump"),
        pytest.param(
            "rows.parquet",
            ("dump", LOG_DIR, "--format", "parquet", "--output", "rows.parquet"),
            id="dump-parquet",
        ),
        pytest.param("report.html", ("report", LOG_DIR, "--output-dir", "page"), id="report"),
        pytest.param(".log", SALVAGE, id="salvage"),
        pytest.param("meta.properties", SALVAGE, id="salvage-properties"),
    ],
)
def test_a_file_that_a_disk_does_not_keep_ends_the_run_and_is_named(
    failing: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(failing, tmp_path, *arguments)
    assert done.returncode == ExitCode.UNREADABLE_INPUT, done.stderr
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert error.startswith("error: [Errno 5] Input/output error: '")
    assert failing.strip("/") in error.rpartition(": ")[2]


@pytest.mark.parametrize(("failing", "arguments"), [(".parquet", ICEBERG), (".pending", PARQUET)])
def test_a_table_whose_files_a_disk_does_not_keep_has_no_rows(
    failing: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    assert run(failing, tmp_path, *arguments).returncode == ExitCode.UNREADABLE_INPUT
    # The next run takes all records, as the first of all would.
    done = run("nothing", tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    first = run("nothing", tmp_path, "export", LOG_DIR, "--output-dir", "first")
    assert _read_words(done.stdout) == _read_words(first.stdout)


def _read_words(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("read ")]


def test_a_directory_whose_file_system_flushes_by_itself_is_no_fault(tmp_path: Path) -> None:
    """FUSE and CIFS answer in this way."""

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    write_file(str(tmp_path / "report.html"), b"whole", refuse)
    assert (tmp_path / "report.html").read_bytes() == b"whole"


def test_a_name_that_a_disk_does_not_keep_is_an_error_of_its_directory(tmp_path: Path) -> None:
    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(OSError, match=f"Input/output error: '{tmp_path}'"):
        write_file(str(tmp_path / "report.html"), b"whole", refuse)
