"""`kafkalog export` beside another run, on a full or read-only disk, and of logs that vanish: an
error, and the table as it was. Rules: F530, F652, F661."""

import ctypes
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.lake.iceberg.iceberg_maintenance import leftover_files
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from tests.support.lake.growing_topic import GrowingTopic
from tests.support.lake.iceberg_tables import scanned
from tests.support.lake.parquet_tables import listed, named, parquet_names
from tests.support.repository import ROOT

_AFTER_ALL_MS = 4_102_444_800_000
_WAIT_S = 200
# Of prctl(2), and the capability by which root writes where it has no permission.
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1

# The command, which waits before a call of a method until the file `go` is there. That it waits is
# said by another file.
_WAITING = """
import os, sys, time
from pathlib import Path
from kafkalog.command_line.main import main
from kafkalog.lake.export_plan import ExportPlan
from kafkalog.lake.export_task import ExportTask
name, go = sys.argv[1], Path(sys.argv[2])
owner = {"commit": ExportPlan, "written_files": ExportTask}[name]
usual = getattr(owner, name)
def waiting(*given, **named):
    go.with_name(f"waits-{os.getpid()}").touch()
    while not go.exists():
        time.sleep(0.01)
    return usual(*given, **named)
setattr(owner, name, waiting)
del sys.argv[1:3]
main()
"""


class Exports:
    """A log directory with topic orders, and exports of it to a table of one format."""

    def __init__(self, folder: Path, table_format: str) -> None:
        self.folder, self.output = folder, folder / "tables"
        self.is_iceberg = table_format == "iceberg"
        self._topic = GrowingTopic(folder / "logs")
        self.send = self._topic.send

    def start(self, *program: str, **settings: Any) -> subprocess.Popen[str]:
        """The command in a process of its own."""
        command = [sys.executable, *(program or ("-m", "kafkalog")), "export"]
        command += [str(self.folder / "logs"), "--output-dir", str(self.output)]
        command += ["--format", "iceberg" if self.is_iceberg else "parquet", "--processes", "1"]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=ROOT, text=True, **pipes, **settings)

    def run(self, **settings: Any) -> tuple[int, str]:
        """The command's exit code, and what it says on stderr."""
        return ended(self.start(**settings))

    def waiting(self, processes: int, method: str) -> list[subprocess.Popen[str]]:
        """Several of the command, all of which wait before a method; `go` lets them go on."""
        go = str(self.folder / "go")
        started = [self.start("-c", _WAITING, method, go) for _ in range(processes)]
        deadline = time.monotonic() + _WAIT_S
        while len([*self.folder.glob("waits-*")]) < processes and time.monotonic() < deadline:
            time.sleep(0.01)
        return started

    def go(self) -> None:
        (self.folder / "go").touch()

    def files(self) -> set[str]:
        return parquet_names(self.output)

    def is_complete(self) -> bool:
        """Whether the table has every record that was sent once, and no file is left over."""
        return self.offsets() == self._topic.offsets()

    def offsets(self) -> list[tuple[int, int]]:
        """The partition and the offset of all rows, as other readers see them. Fails where a file
        is left over."""
        if self.is_iceberg:
            table = IcebergTable(output_dir=str(self.output))
            rows = scanned(table)
            assert leftover_files(table, _AFTER_ALL_MS) == []
            table.catalog.close()
        else:
            rows = listed(self.output / "ingested_records")
            assert len(rows) == len(named(self.output / "ingested_records"))
            assert not [name for name in self.files() if name.endswith(".pending")]
        columns = (rows[name].to_pylist() for name in ("partition", "offset"))
        return sorted(zip(*columns, strict=True))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=_WAIT_S)
    return process.returncode, err


@pytest.fixture(params=["parquet", pytest.param("iceberg", marks=pytest.mark.deep)])
def exports(request: pytest.FixtureRequest, tmp_path: Path) -> Exports:
    return Exports(tmp_path, request.param)


@pytest.mark.parametrize("is_new", [True, False])
def test_of_two_processes_at_once_one_writes_and_the_other_says_that_it_has_not(
    is_new: bool, exports: Exports
) -> None:
    exports.send(3)
    if not is_new:
        assert exports.run()[0] == 0
        exports.send(4)
    processes = exports.waiting(2, "commit")
    exports.go()
    (won, _), (lost, said) = sorted(map(ended, processes))
    assert (won, lost) == (0, 3), said
    assert "another run has written meanwhile, this one has written nothing: run it again" in said
    assert "Traceback" not in said
    assert exports.is_complete()
    after = exports.files()
    assert exports.run()[0] == 0
    assert exports.files() == after


def test_a_full_disk_is_an_error_that_leaves_the_table_as_it_was(exports: Exports) -> None:
    exports.send(3)
    assert exports.run()[0] == 0
    before, files = exports.offsets(), exports.files()
    exports.send(4, 500_000)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))

    code, said = exports.run(preexec_fn=limit)
    assert code == 3, said
    assert "File too large" in said
    assert str(exports.output) in said
    assert len(said.splitlines()) == 2
    assert (exports.offsets(), exports.files()) == (before, files)
    assert exports.run()[0] == 0
    assert exports.is_complete()


@pytest.fixture
def read_only(exports: Exports) -> Iterator[Exports]:
    """A table with some records, in whose directories and files nothing can be written."""
    exports.send(3)
    assert exports.run()[0] == 0
    paths = {path: path.stat().st_mode for path in exports.output.rglob("*")}
    for path, mode in paths.items():
        path.chmod(mode & ~0o222)
    yield exports
    for path, mode in paths.items():
        path.chmod(mode)


def test_a_table_that_cannot_be_written_is_an_error_and_stays(read_only: Exports) -> None:
    before, files = read_only.offsets(), read_only.files()
    read_only.send(4)

    def as_ordinary_user() -> None:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)

    code, said = read_only.run(preexec_fn=as_ordinary_user)
    assert code == 3, said
    assert "Permission denied" in said or "readonly database" in said
    assert "ingested_records" in said
    assert len(said.splitlines()) == 2
    assert (read_only.offsets(), read_only.files()) == (before, files)


def test_a_segment_that_vanishes_is_an_error_that_leaves_the_table_as_it_was(
    exports: Exports,
) -> None:
    exports.send(3)
    assert exports.run()[0] == 0
    before, files = exports.offsets(), exports.files()
    exports.send(4)
    (process,) = exports.waiting(1, "written_files")
    segment = exports.folder / "logs" / "orders-1" / "00000000000000000000.log"
    kept = segment.rename(exports.folder / "vanished")
    exports.go()
    code, said = ended(process)
    assert code == 3, said
    assert f"error: {segment} is missing since the run began" in said
    assert "no table was changed" in said
    assert (exports.offsets(), exports.files()) == (before, files)
    kept.rename(segment)
    assert exports.run()[0] == 0
    assert exports.is_complete()
