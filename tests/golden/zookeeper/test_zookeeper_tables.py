"""ZooKeeper's files by `kafkalog.scan` and `kafkalog sql`. Rule: F1321."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kafkalog
from kafkalog.command_line.main import kafkalog as command
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from tests.support.repository import Unpack


def listed(root: Path) -> dict[str, dict[str, Any]]:
    """What a client of the live ensemble listed, by path."""
    lines = (root / "golden" / "znodes.jsonl").read_text().splitlines()
    return {row["path"]: row for row in map(json.loads, lines)}


def moment(listing: dict[str, dict[str, Any]]) -> int:
    """The last transaction that the listing knows of."""
    return max(max(row["mzxid"], row["pzxid"]) for row in listing.values())


def ask(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, ["sql", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("name", ["kafka08", "kafka010", "kafka39zk"])
def test_znodes_are_those_that_a_client_listed(name: str, unpacked: Unpack) -> None:
    root = unpacked(f"{name}.zookeeper")
    expected = listed(root)
    columns = ["path", "version", "mzxid"]
    scan = kafkalog.scan(
        root / "zookeeper-live", "znodes", columns=columns, zxid_as_of=moment(expected)
    )
    found = {row["path"]: (row["version"], row["mzxid"]) for row in scan.to_table().to_pylist()}
    assert found == {path: (row["version"], row["mzxid"]) for path, row in expected.items()}
    below = kafkalog.scan(
        root / "zookeeper-live", "znodes", znode="/brokers", zxid_as_of=moment(expected)
    )
    paths = {path for path in expected if path == "/brokers" or path.startswith("/brokers/")}
    assert set(below.to_table()["path"].to_pylist()) == paths


def test_a_query_filters_them(unpacked: Unpack) -> None:
    root = unpacked("kafka39zk.zookeeper")
    query = "select path from znodes where path like '/brokers/topics/%' and children = 0"
    code, out, error = ask(root / "zookeeper-live", query, "--format", "json")
    assert code == ExitCode.DONE, error
    paths = {json.loads(line)["path"] for line in out.splitlines()}
    expected = {
        path
        for path, row in listed(root).items()
        if path.startswith("/brokers/topics/") and row["numChildren"] == 0
    }
    assert paths == expected


def test_tables_that_logs_have_too_have_the_rows_of_both(unpacked: Unpack) -> None:
    zookeeper = unpacked("kafka39zk.zookeeper") / "zookeeper-after-broker-stop"
    logs = sorted((unpacked("kafka39zk.logs") / "log-dirs").iterdir())
    code, out, error = ask(
        *(zookeeper, *logs),
        "select count(*) as n, (select count(*) from partition_states) as states, "
        "(select count(distinct topic) from records) as topics from cluster_partitions",
        *("--format", "json"),
    )
    assert code == ExitCode.DONE, error
    row = json.loads(out)
    # No log of this cluster is of KRaft: its partitions are those of ZooKeeper.
    assert row["n"] == row["states"] > 0
    assert row["topics"] > 1
    kraft = kafkalog.scan("examples/controller", "cluster_partitions", as_of="2026-11-22")
    both = kafkalog.scan(
        ["examples/controller", zookeeper], "cluster_partitions", as_of="2026-11-22"
    )
    assert both.to_table().num_rows == kraft.to_table().num_rows + row["n"]


def test_what_is_not_there_is_said(unpacked: Unpack) -> None:
    zookeeper = unpacked("kafka39zk.zookeeper") / "zookeeper-after-broker-stop"
    assert "records" not in ask(zookeeper, "show tables")[1].split()
    for path, table, needed in (
        (zookeeper, "records", "it is of logs: give log directories too"),
        ("examples/controller", "znodes", "it is of ZooKeeper's files: give a server's data"),
    ):
        code, _, error = ask(path, f"select * from {table}")
        assert (code, needed in error) == (ExitCode.WRONG_ARGUMENTS, True)
    wrong: tuple[tuple[str | Path, dict[str, Any]], ...] = (
        ("examples/controller", {"view": "znodes"}),
        ("examples/controller", {"znode": "/brokers"}),
        (zookeeper, {}),
        (zookeeper, {"view": "znodes", "topics": "orders"}),
    )
    for path, given in wrong:
        with pytest.raises(OptionError):
            kafkalog.scan(path, **given)
