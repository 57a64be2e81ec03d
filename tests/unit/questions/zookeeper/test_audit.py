"""What the audit does about damage, and which logs are compared. Rules: F416, F417,
F469."""

from pathlib import Path

import pytest

from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.errors import CorruptDataError, DataLossError
from kafkalog.questions.zookeeper.audit import Audit, AuditSettings, audit, cluster_logs
from kafkalog.storage.log_dir.log_dir_names import LogDirNames, log_dir_names
from kafkalog.views.options.options import Mode
from kafkalog.zookeeper.data_dir import find_data_dirs
from tests.support.logs.log_dirs import add_meta_properties, add_partition
from tests.support.zookeeper.clusters import topic
from tests.support.zookeeper.ensembles import write_ensemble
from tests.support.zookeeper.zookeeper_files import flipped

TREE = {"/brokers/topics/t": topic(1), "/consumers/g/offsets/t/0": "7"}


def audited(folder: Path, mode: Mode) -> Audit:
    return audit(AuditSettings(find_data_dirs([str(folder)]), (), 1, mode))


def test_a_damaged_snapshot_is_an_error_or_passed_over(tmp_path: Path) -> None:
    folder = write_ensemble(tmp_path, TREE)
    newer = folder / "version-2" / "snapshot.200"
    content = (folder / "version-2" / "snapshot.100").read_bytes()
    newer.write_bytes(flipped(content, 8 * content.index(b"consumers")))
    with pytest.raises(CorruptDataError, match="mode PERMISSIVE reads on"):
        audited(folder, Mode.FAILFAST)
    found = audited(folder, Mode.PERMISSIVE)
    (about,) = found.ownership
    assert (about["group_id"], about["committed_offset"]) == ("g", 7)
    assert found.clusters[0][0].zxid == 0x100


def test_a_file_that_was_purged_meanwhile_is_said_to_be(tmp_path: Path) -> None:
    folder = write_ensemble(tmp_path, TREE)
    settings = AuditSettings(find_data_dirs([str(folder)]), (), 1)
    (folder / "version-2" / "snapshot.100").unlink()
    with pytest.raises(DataLossError, match=r"snapshot\.100 no longer exists"):
        audit(settings)


def test_the_history_begins_with_the_oldest_sound_snapshot(tmp_path: Path) -> None:
    folder = write_ensemble(tmp_path, {**TREE, "/consumers/g/owners/t/0": "a-0"}, zxid=0x200)
    content = (folder / "version-2" / "snapshot.200").read_bytes()
    older = folder / "version-2" / "snapshot.100"
    older.write_bytes(flipped(content, 8 * content.index(b"consumers")))
    assert [claim["owner"] for claim in audited(folder, Mode.PERMISSIVE).history] == ["a-0"]


def log_dir(path: Path, cluster_id: str) -> LogDirNames:
    add_meta_properties(path, cluster_id=cluster_id)
    add_partition(path, "t-0")
    (found,) = log_dir_names([str(path)])
    return found


def test_copies_of_a_broker_are_not_compared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, copy = (log_dir(tmp_path / name, "c") for name in ("one", "copy"))
    for each in (one, copy):
        (Path(each.path) / "t-0" / f"{0:020d}.log").touch()
    clusters = [EnsembleCluster("/zk", "", "c", "0x2 1", 1)]
    assert list(cluster_logs([one, copy], clusters)) == []
    assert "offsets are not compared with logs: partition t-0 is there twice" in caplog.text


def test_log_directories_of_others_are_not_compared(tmp_path: Path) -> None:
    other = log_dir(tmp_path / "other", "another")
    assert list(cluster_logs([other], [EnsembleCluster("/zk", "", "c", "0x2 1", 1)])) == []
    # Of several clusters, one without an id could have any log directory.
    several = [EnsembleCluster("/zk", "", None, made, 1) for made in ("0x2 1", "0x2 2")]
    assert list(cluster_logs([other], several)) == []
