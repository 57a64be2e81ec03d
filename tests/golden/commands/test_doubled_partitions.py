"""Commands go on where a partition is in two directories of one broker. Rule: F1170.

The directories are those on which a real broker ended its start (F969).
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kafkalog
from kafkalog.command_line.main import kafkalog as program
from kafkalog.errors import LogDirError
from kafkalog.exit_codes import ExitCode
from kafkalog.server.logs.served_cluster import ServedCluster
from tests.support.golden.startup_cases import startup_cases
from tests.support.repository import Unpack

Made = Callable[[str], Path]


@pytest.fixture
def made(unpacked: Unpack, tmp_path: Path) -> Made:
    return lambda name: startup_cases(unpacked)[name].made_in(tmp_path / name)


def run(command: str, node: Path, *more: str) -> Result:
    paths = [str(path) for path in sorted(node.glob("d[0-9]"))]
    return CliRunner().invoke(program, [*command.split(), *paths, "--processes", "1", *more])


def lags(node: Path) -> tuple[int, dict[tuple[str, str, int], Any]]:
    found = run("groups", node, "--format", "json")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    lag = {(row["group"], row["topic"], row["partition"]): row["lag"] for row in rows}
    return found.exit_code, lag


def test_groups_read_the_directory_that_the_metadata_assigns(made: Made) -> None:
    # The double is a copy of the partition as it was: the lag is that of the node without it.
    code, found = lags(made("04a-double"))
    assert code == ExitCode.UNREADABLE_INPUT
    assert (ExitCode.DONE, found) == lags(made("00-control"))
    assert found["g", "orders", 0] == 8


@pytest.mark.parametrize("command", ["groups", "txns", "ls", "check", "lag-history", "retention"])
def test_both_directories_and_the_one_that_counts_are_named(made: Made, command: str) -> None:
    node = made("04a-double")
    found = run(command, node)
    assert found.exit_code == ExitCode.UNREADABLE_INPUT
    (line,) = (each for each in found.stderr.splitlines() if "in two directories" in each)
    assert f"{node / 'd1/orders-0'} and {node / 'd2/orders-0'}: " in line
    assert f"the cluster's metadata assigns it to {node / 'd2'}" in line


def records(node: Path, mode: str = "PERMISSIVE") -> list[dict[str, Any]]:
    paths = [str(path) for path in sorted(node.glob("d[0-9]"))]
    columns = ["topic", "partition", "offset", "value"]
    scan = kafkalog.scan(paths, topics=["orders"], mode=mode, columns=columns)
    return sorted(scan.to_table().to_pylist(), key=lambda row: (row["partition"], row["offset"]))


def test_a_scan_reads_what_counts_and_logs_the_other(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    expected = records(made("00-control"))
    node = made("04a-double")
    assert [row for row in expected if row["partition"] == 0]
    assert records(node) == expected
    assert f"and {node / 'd2/orders-0'}: " in caplog.text
    with pytest.raises(LogDirError, match=r"assigns it to .*/d2 \(mode PERMISSIVE reads only"):
        records(node, "FAILFAST")


def test_records_of_the_partition_are_left_out_where_nothing_says_which_counts(made: Made) -> None:
    expected = [row for row in records(made("00-control")) if row["partition"] != 0]
    node = made("04a-double")
    shutil.rmtree(node / "d1" / "__cluster_metadata-0")
    assert records(node) == expected
    with pytest.raises(LogDirError, match=r"\(mode PERMISSIVE continues without the partition\)"):
        records(node, "FAILFAST")


def test_export_and_state_write_what_counts(made: Made, tmp_path: Path) -> None:
    shown = []
    for name in ("00-control", "04a-double"):
        node, output = made(name), str(tmp_path / f"out-{name}")
        options = ["--topic", "orders", "--mode", "PERMISSIVE"]
        state = run("state", node, *options, "--format", "json")
        written = ["--output-dir", output, "--format", "parquet"]
        first = run("export", node, *options, *written)
        again = run("export", node, *options, *written)
        assert "nothing is new" in again.stdout
        texts = (state.stdout.replace(str(node), ""), first.stdout.replace(output, ""))
        shown.append(texts)
        codes = {result.exit_code for result in (state, first, again)}
        assert codes == {ExitCode.DONE if name == "00-control" else ExitCode.UNREADABLE_INPUT}
    assert shown[0] == shown[1]


@pytest.mark.parametrize("command", ["export --output-dir out", "state"])
def test_failfast_refuses_it_and_says_what_permissive_reads(made: Made, command: str) -> None:
    found = run(command, made("04a-double"), "--topic", "orders")
    assert found.exit_code == ExitCode.UNREADABLE_INPUT
    assert "d2 (mode PERMISSIVE reads only that one)" in found.stderr


def test_sql_names_it(made: Made) -> None:
    node = made("04a-double")
    question = "select count(*) as n from records where topic = 'orders'"
    found = run("sql", node, question, "--mode", "PERMISSIVE", "--format", "json")
    assert found.exit_code == ExitCode.UNREADABLE_INPUT
    assert json.loads(found.stdout) == {"n": len(records(made("00-control")))}
    assert "d2/orders-0: the cluster's metadata assigns it to" in found.stderr


def test_a_server_serves_the_directory_that_counts(
    made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    node = made("04a-double")
    cluster = ServedCluster([str(node / "d1"), str(node / "d2")])
    (log,) = [log for log in cluster.logs if (log.topic, log.partition) == ("orders", 0)]
    assert log.path == str(node / "d2/orders-0")
    assert {*cluster.topics["orders"].partitions} == {0, 1}
    assert "in two directories of broker 1" in caplog.text


def test_without_metadata_only_that_partition_is_not_read(made: Made) -> None:
    node = made("04a-double")
    expected = lags(made("00-control"))[1]
    shutil.rmtree(node / "d1" / "__cluster_metadata-0")
    code, found = lags(node)
    assert code == ExitCode.UNREADABLE_INPUT
    unknown = {key for key, lag in found.items() if lag is None}
    assert unknown == {key for key in expected if key[1:] == ("orders", 0)}
    assert {key: lag for key, lag in found.items() if lag is not None} == {
        key: lag for key, lag in expected.items() if key not in unknown
    }
    stderr = run("groups", node).stderr
    assert "nothing says which of them counts, and neither is read" in stderr
    # What takes space is shown, whichever counts.
    copies = run("ls", node, "--format", "json").stdout.splitlines()
    assert [row["copies"] for row in map(json.loads, copies) if row["topic"] == "orders"] == [3]


def test_a_copy_of_a_whole_directory_is_refused(made: Made) -> None:
    node = made("00-control")
    shutil.copytree(node / "d2", node / "d3")
    found = run("groups", node)
    assert found.exit_code == ExitCode.UNREADABLE_INPUT
    assert "both say that they are of broker 1: one is a copy; give only one" in found.stderr
