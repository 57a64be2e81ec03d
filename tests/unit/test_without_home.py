"""Containers run programs as users that have no home and no name."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository import ROOT

USER = 54321
LOG_DIR = ROOT / "examples" / "log-dirs" / "kafka-4.4"
COMMAND = "from kafkalog.command_line.main import main; main()"
# What the planning Python and a task's Python do.
READS = f"""
from kafkalog.spark.source.data_source import KafkaLogDataSource
source = KafkaLogDataSource({{"path": {str(LOG_DIR)!r}}})
reader = source.reader(source.schema())
print(sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)))
"""


def python_of_all_users() -> str:
    """A Python of this version that any user can start."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        place = Path(python or "/missing").resolve()
        if all(folder.exists() and folder.stat().st_mode & 0o001 for folder in place.parents):
            return str(python)
    pytest.skip(f"no {version} that another user can start")


@pytest.fixture
def temporary() -> Iterator[str]:
    """A directory of that user's: pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as temporary:
        if os.geteuid() != 0:
            pytest.skip("only root can be another user")
        os.chown(temporary, USER, USER)
        yield temporary


def printed_by_another_user(program: str, temporary: str, *arguments: str) -> str:
    """What a program prints to a user that is in no list, without any variable."""
    python = python_of_all_users()
    done = subprocess.run(
        [python, "-c", program, *arguments],
        user=USER,
        group=USER,
        extra_groups=[],
        cwd="/",
        env={
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            "PATH": "/usr/bin:/bin",
            "TMPDIR": temporary,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_commands_work_without_a_home_or_a_name(temporary: str) -> None:
    assert "8 partitions" in printed_by_another_user(COMMAND, temporary, "check", str(LOG_DIR))


def test_the_source_plans_and_reads_without_a_home_or_a_name(temporary: str) -> None:
    assert int(printed_by_another_user(READS, temporary)) > 0
