"""Restores that are killed, that fill the disk, and that run again: F1030 of docs/restore.md. Set
restore44 of tests/golden/README.md."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.forks import killed_at
from tests.support.golden.restored_copies import AS_OF, restore

# Where a restore is killed: before its first file, between partitions, before the metadata, before
# it is judged, and before it gets its name.
POINTS = (
    "kafkalog.questions.restore.runs.write_restored",
    "kafkalog.questions.restore.restoring.Restored.add",
    "kafkalog.questions.restore.metadata.RestoredMetadata.write",
    "kafkalog.questions.restore.runs.refuse_unsound",
    "os.rename",
)


def digests(paths: list[Path]) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in paths
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_existing_directory_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    refused = restore(inputs, "--to", str(tmp_path))
    assert refused.exit_code == ExitCode.UNREADABLE_INPUT
    assert "exists" in refused.output
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_where_the_disk_gets_full(inputs: list[Path], tmp_path: Path) -> None:
    """A file system of 1 MiB, which the process alone sees: the cluster has more."""
    small = tmp_path / "small"
    small.mkdir()
    before = digests(inputs)
    words = (
        'mount -t tmpfs -o size=1m tmpfs "$1"; shift; place=$1; shift; "$@"; status=$?; '
        'ls -A "$place"; exit $status'
    )
    command = [sys.executable, "-m", "kafkalog", "restore", *map(str, inputs), "--as-of", AS_OF]
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", words, "sh"]
    if subprocess.run([*alone[:4], "mount", "-t", "tmpfs", "tmpfs", str(small)]).returncode:
        pytest.skip("needs user namespaces, to mount a small file system")
    full = subprocess.run(
        [*alone, str(small), str(small), *command, "--to", str(small / "cluster")],
        capture_output=True,
        text=True,
    )
    assert full.returncode not in (ExitCode.DONE, ExitCode.FINDINGS)
    assert "No space left on device" in full.stderr
    assert full.stdout == ""
    assert digests(inputs) == before


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_restore_leaves_no_cluster_and_the_next_run_removes_the_rest(
    point: str, inputs: list[Path], tmp_path: Path
) -> None:
    target = tmp_path / "cluster"
    given = ["--as-of", AS_OF, "--to", str(target)]
    for _ in range(2):
        killed_at(point, lambda: restore(inputs, *given))
        # It has a hidden name, which no reader takes for a cluster.
        (left,) = tmp_path.iterdir()
        assert left.name.startswith(".")
    again = restore(inputs, *given)
    assert again.exit_code == ExitCode.FINDINGS, again.output
    assert [path.name for path in tmp_path.iterdir()] == ["cluster"]
    verified = restore([], "--verify", str(target))
    assert verified.exit_code == ExitCode.DONE, verified.output
