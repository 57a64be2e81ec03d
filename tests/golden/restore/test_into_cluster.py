"""`kafkalog restore --into`: partitions for a cluster that exists. Rules: docs/restore.md F1311 to
F1314; set restore44 of tests/golden/README.md."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.exit_codes import ExitCode
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.questions.restore.into_cluster import lowered_epochs
from kafkalog.storage.partition_log import topic_id
from tests.support.golden.restored_copies import AS_OF, batches, logs_of, restore


@pytest.fixture
def metadata(inputs: list[Path], tmp_path: Path) -> Path:
    """The metadata of a cluster that has the topics: the old one."""
    copy = tmp_path / "cluster"
    shutil.copytree(inputs[2] / "__cluster_metadata-0", copy / "__cluster_metadata-0")
    shutil.copy(inputs[2] / "meta.properties", copy)
    return copy


def test_each_replica_gets_the_partition(
    inputs: list[Path], metadata: Path, tmp_path: Path
) -> None:
    """F1311 and F1313."""
    target = tmp_path / "new"
    given = ["--as-of", AS_OF, "--topic", "events", "--into", str(metadata), "--to", str(target)]
    result = restore(inputs, *given)
    assert result.exit_code == ExitCode.DONE, result.output
    manifest: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    before = logs_of([inputs[2]])
    for node in (1, 2, 3):
        found = logs_of([target / f"node-{node}" / "data"])
        assert {*found} == {("events", number) for number in range(4)}
        for key, log in found.items():
            assert topic_id(log) == topic_id(before[key])
            epoch = next(
                row["leader_epoch"] for row in manifest["partitions"] if row["partition"] == key[1]
            )
            assert max(header.leader_epoch for header, _ in batches(log)) <= epoch
            (snapshot,) = Path(log.path).glob("*.snapshot")
            # The head alone: no producer.
            assert snapshot.stat().st_size == 10
    assert not list(target.rglob("server.properties"))
    assert not list(target.rglob("__*"))
    command = "--entity-name events --add-config retention.ms=3600000"
    assert result.output.index("retention.ms=-1") < result.output.index(command)


def test_a_cluster_without_the_topic_is_refused(
    inputs: list[Path], metadata: Path, tmp_path: Path
) -> None:
    """F1311: doomed was deleted after the moment."""
    given = ["--as-of", AS_OF, "--topic", "doomed", "--to", str(tmp_path / "new")]
    result = restore(inputs, *given, "--into", str(metadata))
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "it has no topic doomed: create it with --partitions 1" in result.output
    assert not (tmp_path / "new").exists()


def test_other_numbers_of_partitions_are_refused(
    inputs: list[Path], metadata: Path, tmp_path: Path
) -> None:
    """F1311: new-early got two more partitions after the moment."""
    given = ["--as-of", AS_OF, "--topic", "new-early", "--to", str(tmp_path / "new")]
    result = restore(inputs, *given, "--into", str(metadata))
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "topic new-early has 4 partitions there, and 2 are restored" in result.output


def test_a_directory_without_metadata_is_no_cluster(inputs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = restore(inputs, "--into", str(tmp_path / "empty"), "--to", str(tmp_path / "new"))
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert str(tmp_path / "empty") in result.output


def test_what_the_cluster_decides_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    result = restore(
        inputs, "--into", str(inputs[0]), "--to", str(tmp_path / "new"), "--keep-cluster-id"
    )
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--into cannot be used with --keep-cluster-id" in result.output


def test_no_epoch_is_above_the_cluster_s() -> None:
    """F1312."""
    epochs = [EpochStart(0, 0), EpochStart(3, 10), EpochStart(5, 20), EpochStart(7, 30)]
    assert lowered_epochs(epochs, 4) == [EpochStart(0, 0), EpochStart(3, 10), EpochStart(4, 20)]
    assert lowered_epochs(epochs, 9) == epochs
