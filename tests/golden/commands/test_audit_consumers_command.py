"""`kafkalog audit-consumers` on the files of a real server of ZooKeeper. Rules: F448, F466."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from tests.support.repository import Unpack


@pytest.fixture(scope="module")
def data_dir(unpacked: Unpack) -> Path:
    return unpacked("kafka010.zookeeper") / "zookeeper-live"


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["audit-consumers", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def rows(data_dir: Path, by: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in run(data_dir, "--by", by, "--format", "json")[1].split("\n")[:-1]
    ]


def test_live_groups_of_a_real_ensemble(data_dir: Path) -> None:
    # Three live groups: 1, 4 and 4 partitions; the fourth has left and its offset stays.
    code, out, _ = run(data_dir)
    assert code == ExitCode.FINDINGS
    head = "4 groups, 10 partitions: 9 owned, 9 assigned; 15 claims in the history"
    assert head in out.splitlines()
    (finding,) = rows(data_dir, "finding")
    assert (finding["finding"], finding["group_id"]) == ("group_without_members", "old.g-old-gone")
    owned = rows(data_dir, "partition")
    assert list(owned[0]) == [field["name"] for field in table_fields("partition_ownership")]
    assert sum(row["owner"] is not None and row["owner"] == row["assigned"] for row in owned) == 9
    claims = rows(data_dir, "claim")
    waited = [row for row in claims if row["release"] is None and row["unowned_ms"] is not None]
    assert [row["claim_cause"] for row in waited] == ["member_joined"] * 4


def test_what_is_no_data_directory_is_unreadable_input(tmp_path: Path, data_dir: Path) -> None:
    code, _, error = run(tmp_path)
    assert code == ExitCode.UNREADABLE_INPUT
    assert "holds no snapshot.* and no log.* of ZooKeeper" in error
    assert run(data_dir, "--log-dir", tmp_path / "nowhere")[0] == ExitCode.UNREADABLE_INPUT


def test_without_a_cluster_nothing_is_audited(unpacked: Unpack, tmp_path: Path) -> None:
    # A server's first snapshot, before a broker has written to it.
    empty = unpacked("kafka39zk.zookeeper") / "zookeeper-live" / "version-2" / "snapshot.0"
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / empty.name).write_bytes(empty.read_bytes())
    code, out, error = run(tmp_path)
    assert (code, out) == (ExitCode.UNREADABLE_INPUT, "")
    assert f"{tmp_path}: no Kafka cluster as of zxid 0x0" in error and "newer snapshot" in error
