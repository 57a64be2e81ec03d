"""Input and output that restore refuses: docs/restore.md F1030 and F1062."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.golden.restored_copies import AS_OF


def restore(paths: list[Path], target: Path, *more: str) -> Result:
    arguments = ["restore", *map(str, paths), "--as-of", AS_OF, "--to", str(target), *more]
    return CliRunner().invoke(kafkalog, arguments)


def test_disks_of_two_clusters_are_refused(inputs: list[Path], tmp_path: Path) -> None:
    other = Path(shutil.copytree(inputs[1], tmp_path / "other"))
    properties = other / "meta.properties"
    lines = properties.read_text().splitlines()
    changed = [
        "cluster.id=AAAAAAAAAAAAAAAAAAAAAA" if line.startswith("cluster.id") else line
        for line in lines
    ]
    properties.write_text("\n".join(changed))
    result = restore([inputs[0], other], tmp_path / "restored")
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "different clusters" in result.output
    assert not (tmp_path / "restored").exists()


def test_the_same_disk_given_twice_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    again = Path(shutil.copytree(inputs[0], tmp_path / "again"))
    result = restore([*inputs, again], tmp_path / "restored")
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "both say that they are of broker 1" in result.output


def test_a_target_inside_the_input_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    disk = Path(shutil.copytree(inputs[0], tmp_path / "disk"))
    before = sorted(disk.iterdir())
    result = restore([disk], disk / "restored")
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert f"outside of {disk}" in result.output
    assert sorted(disk.iterdir()) == before


def test_a_target_inside_tiered_storage_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    """F1202: the store is only read."""
    store = tmp_path / "store"
    folder = store / "orders-0-AAAAAAAAAAAAAAAAAAAAAA"
    folder.mkdir(parents=True)
    stem = folder / f"{0:020d}-AAAAAAAAAAAAAAAAAAAAAA"
    stem.with_suffix(".log").write_bytes(b"")
    stem.with_suffix(".leader_epoch_checkpoint").write_text("0\n1\n0 0\n")
    result = restore([*inputs, store], store / "restored")
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert f"outside of {store}" in result.output


@pytest.mark.parametrize("kafka", ["4.3.1", "3.9"])
def test_a_release_that_cannot_open_the_result_is_refused(
    kafka: str, inputs: list[Path], tmp_path: Path
) -> None:
    """F1062: the cluster's metadata.version is that of 4.4."""
    refused = restore(inputs, tmp_path / "new", "--kafka", kafka)
    assert refused.exit_code == ExitCode.UNREADABLE_INPUT
    assert f"Kafka {kafka} cannot open the result" in refused.output
    assert "need 4.4 or later" in refused.output
    assert not (tmp_path / "new").exists()
    assert restore(inputs, tmp_path / "new", "--kafka", "4.4.0").exit_code == ExitCode.FINDINGS
