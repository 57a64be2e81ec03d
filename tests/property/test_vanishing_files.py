"""A running broker deletes files, and renames and deletes directories, while they are read: every
command goes on with the rest, names what it could not read, and ends with 3. F950, F951."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.disks.vanishing_files import (
    VanishingFiles,
    delete_directory,
    delete_file,
    mark_as_stray,
)
from tests.support.repository import SHOP

_EACH = 6  # so many files of a run vanish, each in a run of its own
COMMANDS = (
    "check",
    "dump",
    "dump --deep",
    "export --output-dir {out}",
    "find --topic orders --key absent",
    "get-offsets",
    "get-offsets --time max-timestamp",
    "get-offsets --time 1794202763466",
    "groups --all-groups",
    "groups --why billing",
    "groups --members",
    "ls",
    "ls --by segment",
    "ls --deep",
    "ls --savings",
    "recover --all",
    "recover --all --shutdown unclean",
    "replicas --all",
    "report --output-dir {out}",
    "salvage --to {out}",
    "txns --all",
    "txns --stable-offsets",
    "undelete --topic orders --to {out}",
)


def run(command: str, root: Path, out: Path) -> Result:
    name, *options = command.format(out=out).split()
    processes = () if name == "undelete" else ("--processes", "1")
    return CliRunner().invoke(kafkalog, [name, str(root), *options, *processes])


def copy_of(source: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy to read, and a directory to write, without those of the run before."""
    for path in (tmp_path / "in", tmp_path / "out"):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, tmp_path / "in")
    return tmp_path / "in", tmp_path / "out"


def numbers(files: VanishingFiles) -> list[int]:
    """Some of the files that a run opens: the first, the last, and others between."""
    count = len(files.opened)
    return sorted({count * each // _EACH for each in range(_EACH)} | {count - 1})


def survived(result: Result, files: VanishingFiles) -> None:
    """The run went on without the file, and has said so if it was to read it."""
    said = f"{files.path}: exit code {result.exit_code}: {result.stderr[-2000:]}"
    assert isinstance(result.exception, SystemExit | None), said
    # What retention cannot have deleted may come back: no table goes on without it.
    is_refused = "no table was changed" in result.stderr
    assert "error: " not in result.stderr or is_refused, said
    assert "[Errno" not in result.stderr, said
    assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS, ExitCode.UNREADABLE_INPUT), said


def names(result: Result, files: VanishingFiles) -> None:
    """The segment and its offsets are named, and the exit code says that it is missing."""
    said = f"{files.path}: exit code {result.exit_code}: {result.stderr[-2000:]}"
    line = rf"{re.escape(str(files.path))} was deleted while it was read: offsets? .*not in the out"
    assert re.search(line, result.stderr), said
    assert result.exit_code == ExitCode.UNREADABLE_INPUT, said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_deleted_costs_this_file_alone(command: str, tmp_path: Path) -> None:
    root, out = copy_of(SHOP, tmp_path)
    if command.startswith("undelete"):
        (root / "orders-0").rename(root / f"orders-0.{'0' * 32}-delete")
        shutil.copytree(root, tmp_path / "deleted")
    source = tmp_path / "deleted" if command.startswith("undelete") else SHOP
    whole = VanishingFiles(root, -1)
    with pytest.MonkeyPatch.context() as patched:
        whole.install(patched)
        assert run(command, root, out).exit_code in (ExitCode.DONE, ExitCode.FINDINGS)
    assert whole.opened
    for number in numbers(whole):
        root, out = copy_of(source, tmp_path)
        files = VanishingFiles(root, number, delete_file)
        with pytest.MonkeyPatch.context() as patched:
            files.install(patched)
            result = run(command, root, out)
        survived(result, files)
        if files.path is not None and files.path.suffix == ".log" and not files.was_read:
            names(result, files)


@pytest.mark.parametrize("vanish", [delete_directory, mark_as_stray])
# A group whose partition of __consumer_offsets is deleted is not known: --why cannot name it.
@pytest.mark.parametrize("command", [each for each in COMMANDS[:-1] if "--why" not in each])
def test_a_partition_that_is_deleted_costs_this_partition_alone(
    command: str, vanish: Callable[[Path], None], tmp_path: Path
) -> None:
    root, out = copy_of(SHOP, tmp_path)
    whole = VanishingFiles(root, -1)
    with pytest.MonkeyPatch.context() as patched:
        whole.install(patched)
        run(command, root, out)
    for number in numbers(whole)[::2]:
        root, out = copy_of(SHOP, tmp_path)
        files = VanishingFiles(root, number, vanish)
        with pytest.MonkeyPatch.context() as patched:
            files.install(patched)
            result = run(command, root, out)
        survived(result, files)


@pytest.mark.parametrize("command", ["metadata --by partition", "quorum"])
def test_a_segment_of_the_metadata_that_is_deleted_is_named(
    command: str, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    source = unpacked("kafka44.logs") / "log-dirs"
    name, *options = command.split()
    for number in range(6):
        root, _ = copy_of(source, tmp_path)
        files = VanishingFiles(root, number)
        with pytest.MonkeyPatch.context() as patched:
            files.install(patched)
            result = CliRunner().invoke(kafkalog, [name, str(root), *options])
        survived(result, files)
        if files.path is not None and files.path.suffix == ".log" and not files.was_read:
            names(result, files)


def test_an_export_counts_what_was_deleted_meanwhile_as_a_gap(tmp_path: Path) -> None:
    """F531: the table's positions go on, and its run says which offsets it has not."""
    root, out = copy_of(SHOP, tmp_path)
    deleted = root / "orders-0" / "00000000000000000000.log"
    files = VanishingFiles(root, -1)
    with pytest.MonkeyPatch.context() as patched:
        files.install(patched)
        run("export --output-dir {out}", root, out)
    root, out = copy_of(SHOP, tmp_path)
    again = VanishingFiles(root, files.opened.index(deleted))
    with pytest.MonkeyPatch.context() as patched:
        again.install(patched)
        result = run("export --output-dir {out}", root, out)
    assert "GAP: orders-0: offsets 0 to 711 were deleted while the run read them" in result.stdout
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
