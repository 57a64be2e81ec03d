"""Which files, topics, batches and records `kafkalog dump` selects; wrong selections."""

import gzip
import shutil
from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.logs.dumped_records import FIRST_MS, dump, json_lines
from tests.support.repository import ROOT

EXAMPLES = ROOT / "examples/log-dirs"
SHOP = ROOT / "examples/shop-week"
SEGMENT = EXAMPLES / f"kafka-4.4/shop.codec-zstd-0/{0:020d}.log"


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        (["--offsets", "1:3"], [1, 2]),
        (["--offsets", "3"], [3]),
        (["--offsets", "2:"], [2, 3]),
        (["--offsets", ":1"], [0]),
        (["--from-time", str(FIRST_MS + 1), "--until-time", "2023-11-14T22:13:20.003Z"], [1, 2]),
        (["--key", "hex:ff00"], [0]),
        (["--key", "base64:/wA="], [0]),
        (["--key", 'k"3'], [3]),
        (["--key", ""], [2]),
        (["--limit", "3"], [0, 1, 2]),
    ],
)
def test_filters_keep_what_they_say(arguments: list[str], offsets: list[int], orders: Path) -> None:
    # F585.
    lines = json_lines("--deep", *arguments, orders)
    assert [line["offset"] for line in lines if line["type"] == "record"] == offsets


def test_batches_without_a_kept_record_are_left_out(orders: Path) -> None:
    lines = json_lines("--key", 'k"3', orders)
    assert [(line["type"], line.get("baseOffset")) for line in lines] == [
        ("batch", 2),
        ("record", None),
    ]


def test_a_limit_counts_batches_where_records_are_not_shown(orders: Path) -> None:
    assert [line["baseOffset"] for line in json_lines("--limit", "1", orders)] == [0]


def test_a_limit_is_of_records_and_logs_come_first() -> None:
    found = json_lines("--deep", "--limit", "3", EXAMPLES / "kafka-4.4")
    assert {line["type"] for line in found} == {"batch", "record"}
    assert sum(line["type"] == "record" for line in found) == 3


def test_a_file_that_is_requested_twice_is_reported_once() -> None:
    log_dir = EXAMPLES / "kafka-4.4"
    partition = log_dir / "shop.tx-0"
    once = dump("--deep", log_dir).stdout
    assert dump("--deep", log_dir, log_dir, partition).stdout == once
    told = dump("--deep", partition, log_dir).stdout
    assert told.startswith(dump("--deep", partition).stdout)
    assert sorted(told.splitlines()) == sorted(once.splitlines())


def test_a_log_directory_dumps_what_is_in_it() -> None:
    result = dump(EXAMPLES / "kafka-4.4")
    names = [
        line.rpartition("/")[2]
        for line in result.stdout.splitlines()
        if line.startswith("Dumping ") and ("shop.tx" in line or "-checkpoint" in line)
    ]
    logs = sum(name.endswith(".log") for name in names)
    assert logs == len(list((EXAMPLES / "kafka-4.4").glob("shop.tx-0/*.log")))
    assert all(name.endswith(".log") for name in names[:logs])
    assert names[logs : logs + 4] == [
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    assert f"{2:020d}.txnindex" in names
    assert names[-1] == "partition.metadata"


def test_a_topic_of_a_log_directory_is_dumped_alone() -> None:
    found = json_lines("--topic", "shop.tx", EXAMPLES / "kafka-4.4")
    assert {line["topic"] for line in found if line["type"] == "batch"} == {"shop.tx"}


def test_a_topic_is_chosen_among_files_too() -> None:
    files = EXAMPLES / "kafka-4.4" / "*" / "*"
    log_dir = json_lines("--topic", "shop.tx", EXAMPLES / "kafka-4.4")
    globbed = json_lines("--topic", "shop.tx", files)
    assert sorted(map(str, globbed)) == sorted(map(str, log_dir))
    assert len({line["file"] for line in globbed}) > 4
    zero = ("--topic", "shop.codec-zstd", "--partition", "0")
    assert json_lines(*zero, SEGMENT) == json_lines(SEGMENT)
    assert "directories hold: shop.codec-zstd" in dump("--topic", "shop.tx", SEGMENT).stderr


def test_offsets_of_a_partition_leave_the_others_out() -> None:
    rows = json_lines("--offsets", "orders-0=3:5", "--offsets", "orders-2=7", "--deep", SHOP)
    found = [(row["partition"], row["offset"]) for row in rows if row["type"] == "record"]
    assert found == [(0, 3), (0, 4), (2, 7)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--topic", "nowhere", EXAMPLES / "kafka-4.4"], 2, "--topic: 'nowhere'"),
        (
            ["--offsets", "orders-7=5:9", SHOP],
            2,
            "--offsets: 'orders-7' is not valid, expected partitions",
        ),
        (["--offsets", "1", "--offsets", "2", SHOP], 2, "--offsets: give one range"),
        (["--from-time", "5", "--until-time", "4", EXAMPLES / "kafka-4.4"], 2, "not before"),
        (["--key", "hex:zz", EXAMPLES / "kafka-4.4"], 2, "hex: followed by hex"),
        (["--format", "parquet", EXAMPLES / "kafka-4.4"], 2, "parquet needs --output FILE"),
        (["--output", EXAMPLES / "kafka-4.4/x", EXAMPLES / "kafka-4.4"], 2, "a file outside of"),
        (["--output", SEGMENT.parent / "x", SEGMENT], 2, "a file outside of"),
        (["--output", "/no/dir/x", SEGMENT], 2, "which /no/dir is not"),
        (["/nowhere"], 3, "no such file or directory"),
        ([ROOT / "pyproject.toml"], 3, "dump does not know a file of this name"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    arguments: list[object], code: int, said: str
) -> None:
    result = dump(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    assert said in result.stderr


@pytest.mark.parametrize(
    ("offsets", "said"),
    [("5:1", "FROM is not below UNTIL"), ("x", "FROM:UNTIL"), ("orders=1:2", "TOPIC-PARTITION=")],
)
def test_offsets_that_are_not_a_range_are_an_error_with_the_usage(offsets: str, said: str) -> None:
    result = dump("--offsets", offsets, SHOP)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_log_of_another_name_is_dumped_as_other_commands_take_it(
    orders: Path, tmp_path: Path
) -> None:
    expected = dump("--deep", orders / SEGMENT.name).stdout
    for name in ("2.log", "orders.bak"):
        path = (orders / SEGMENT.name).rename(tmp_path / name)
        result = dump("--deep", path)
        assert result.exit_code == ExitCode.DONE, result.stderr
        assert result.stdout.splitlines()[1:] == expected.splitlines()[2:]
        path.rename(orders / SEGMENT.name)


def test_a_compressed_log_is_refused_with_what_to_type(orders: Path, tmp_path: Path) -> None:
    path = tmp_path / "2.log.gz"
    path.write_bytes(gzip.compress((orders / SEGMENT.name).read_bytes()))
    result = dump(path)
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert f"compressed by gzip and not a log: unpack it first, with gunzip -k {path}" in (
        result.stderr
    )


def test_snapshots_are_of_the_metadata_whatever_the_directory_is_called(tmp_path: Path) -> None:
    # F958.
    log_dir = tmp_path / "kafka-1"
    shutil.copytree(ROOT / "examples" / "controller", log_dir)
    snapshot = next((log_dir / "__cluster_metadata-0").glob("*0001.checkpoint"))
    snapshot.rename(log_dir / "bootstrap.checkpoint")
    for paths in ([log_dir], [log_dir / "bootstrap.checkpoint"]):
        lines = json_lines("--deep", *paths)
        assert {line.get("topic") for line in lines} <= {"__cluster_metadata", None}
        of_snapshot = [line for line in lines if line["file"].endswith("bootstrap.checkpoint")]
        assert any("TOPIC_RECORD" in str(line.get("payload")) for line in of_snapshot)
