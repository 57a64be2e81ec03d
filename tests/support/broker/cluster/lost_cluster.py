"""A cluster whose disk is copied while it runs, and that is lost; what is restored from the copy
takes its place."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.broker.cluster.restored_node import RestoredNode, ports


def _restore(disks: list[str], target: Path, node: str, *arguments: str) -> None:
    given = [*disks, "--to", str(target), "--nodes", node, *arguments]
    result = CliRunner().invoke(kafkalog, ["restore", *given])
    assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output


class Lost:
    """A cluster whose disk was copied, and that went on for a while before it was lost."""

    def __init__(self, disks: list[str], home: Path) -> None:
        self._home = home
        broker, controller = ports()
        self._node = f"1@127.0.0.1:{broker}/{controller}"
        self.bootstrap = f"127.0.0.1:{broker}"
        _restore(disks, home / "first", self._node, "--as-of", "2026-11-25T19:48:40Z")
        self._running = RestoredNode(home / "first", home / "running")
        self._running.__enter__()

    def copy(self) -> None:
        shutil.copytree(self._running.data, self._home / "copy" / "data")

    @contextmanager
    def replaced(self, *arguments: str) -> Iterator[RestoredNode]:
        """Run what is restored from the copy, at the same place and with the same cluster id, so
        that clients do not notice."""
        self._running.stop()
        target = self._home / "second"
        disks = [str(self._home / "copy" / "data")]
        _restore(disks, target, self._node, "--keep-cluster-id", *arguments)
        with RestoredNode(target, self._home / "second-running") as node:
            yield node

    @property
    def data(self) -> Path:
        return self._running.data

    def stop(self) -> None:
        self._running.stop()
