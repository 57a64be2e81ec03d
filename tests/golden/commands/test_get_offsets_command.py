"""`kafkalog get-offsets` against every line that kafka-get-offsets printed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.testing import LogDirectory, ProducerRecord

Unpacked = Callable[[str], Path]
# The broker reported no offset of these: it hides the cluster's own topic.
OWN_TOPIC = "__cluster_metadata:"


def log_dirs(logs: Path) -> list[str]:
    return sorted(str(path.parent) for path in logs.rglob("meta.properties"))


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["get-offsets", *arguments])
    return result.exit_code, result.stdout, result.stderr


def lines(*arguments: str) -> list[str]:
    code, out, err = run(*arguments, "--processes", "1")
    # The fixtures have records of the future, which are named (F930).
    assert (code, [line for line in err.splitlines() if " is doubtful: " not in line]) == (0, [])
    return [line for line in out.splitlines() if not line.startswith(OWN_TOPIC)]


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("kafka44", ("-1", "-2", "-3")),
        ("kafka39zk", ("-1", "-2", "-3")),
        ("tiered43", ("-1", "-2", "-3", "-4")),
    ],
)
def test_every_line_is_that_of_the_tool(unpacked: Unpacked, name: str, times: list[str]) -> None:
    # F146 to F148
    paths = log_dirs(unpacked(f"{name}.logs"))
    for time in times:
        told = unpacked(f"{name}.golden") / "tools" / f"get_offsets_time{time}.txt"
        assert lines(*paths, "--time", time) == told.read_text().splitlines()


def test_the_oldest_tool_printed_the_same_in_an_order_of_its_own(unpacked: Unpacked) -> None:
    paths = log_dirs(unpacked("kafka010.logs"))
    for time in ("-1", "-2"):
        told = unpacked("kafka010.golden") / "tools" / f"get_offsets_time{time}.txt"
        assert lines(*paths, "--time", time) == sorted(told.read_text().splitlines())


def test_of_tiered_storage_the_last_offset_is_that_of_the_tool(unpacked: Unpacked) -> None:
    store = str(unpacked("tiered43.tiered") / "kafka-tiered-storage")
    told = unpacked("tiered43.golden") / "tools" / "get_offsets_time-5.txt"
    assert lines(store, "--time", "latest-tiered") == told.read_text().splitlines()
    assert len(lines(store, "--time", "-5")) == 3


def test_with_tiered_storage_every_line_is_that_of_the_tool(unpacked: Unpacked) -> None:
    # F146 to F148: of the local start and the largest timestamp brokers answer by their disks.
    store = str(unpacked("tiered43.tiered") / "kafka-tiered-storage")
    paths = [*log_dirs(unpacked("tiered43.logs")), store]
    for time in ("-1", "-2", "-3", "-4", "-5"):
        told = unpacked("tiered43.golden") / "tools" / f"get_offsets_time{time}.txt"
        assert lines(*paths, "--time", time) == told.read_text().splitlines()
    # What is uploaded does not tell what is on a disk.
    for time in ("-3", "-4"):
        assert lines(store, "--time", time) == []


def test_with_tiered_storage_a_time_asks_for_what_the_broker_found(unpacked: Unpacked) -> None:
    # F99
    paths = [
        *log_dirs(unpacked("tiered43.logs")),
        str(unpacked("tiered43.tiered") / "kafka-tiered-storage"),
    ]
    golden = unpacked("tiered43.golden")
    begin = json.loads((golden / "params.json").read_text())["t0"]
    told = json.loads((golden / "admin.json").read_text())["offsets"]
    for name, time in (("t0_plus_20000", begin + 20_000), ("year_2099", 4_070_908_800_000)):
        answers = told[f"for_time_{name}"].items()
        expected = {key: answer["offset"] for key, answer in answers if answer["offset"] >= 0}
        found = [line.rsplit(":", 2) for line in lines(*paths, "--time", str(time))]
        offsets = {f"{topic}-{partition}": int(offset) for topic, partition, offset in found}
        assert {key: offsets.get(key) for key in expected} == expected
        assert "tier.tiered-0" in expected


def test_a_time_asks_for_the_first_record_that_is_as_late(unpacked: Unpacked) -> None:
    # F99; what the admin client received is compared in test_time_lookups.py.
    (path,) = log_dirs(unpacked("kafka44.logs"))
    asked = (path, "--topic", "shop.append.time")
    assert lines(*asked, "--time", "0") == ["shop.append.time:0:0"]
    assert lines(*asked, "--time", "2099-01-01T00:00:00Z") == []


def test_a_record_of_the_future_is_the_answer_as_with_the_tool_and_is_named(tmp_path: Path) -> None:
    # F99, F930
    directory = LogDirectory(tmp_path / "logs")
    topic = directory.topic("orders")
    for time_ms in (1_700_000_000_000, 4_070_908_800_000, 1_700_000_100_000, 1_700_000_200_000):
        topic.records([ProducerRecord("k", "v", timestamp_ms=time_ms)])
    path = directory.write()
    for time in ("1700000100000", "max-timestamp"):
        result = CliRunner().invoke(kafkalog, ["get-offsets", path, "--time", time])
        assert (result.exit_code, result.stdout) == (0, "orders:0:1\n")
        told = "orders-0: the time of offset 1 is doubtful: 2099-01-01T00:00:00.000Z is "
        assert told in result.stderr
    result = CliRunner().invoke(kafkalog, ["get-offsets", path, "--time", "1700000000000"])
    assert (result.stdout, "doubtful" in result.stderr) == ("orders:0:0\n", False)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--topic-partitions", "shop.idem"), ["shop.idem:0"]),
        (("--topic-partitions", "shop.m.*:1-"), ["shop.multi-3-part-0:1", "shop.multi-3-part-0:2"]),
        (("--topic-partitions", "shop.m.*:-1"), ["shop.multi-3-part-0:0"]),
        (("--topic-partitions", "shop.m.*:1-2"), ["shop.multi-3-part-0:1"]),
        (("--topic-partitions", "shop.idem:,shop.m.*:2"), ["shop.idem:0", "shop.multi-3-part-0:2"]),
        (("--topic-partitions", ":3", "--exclude-internal-topics"), ["shop.empty:3"]),
        (("--topic-pattern", "(idem|raw)$"), ["shop.idem:0", "shop.raw:0"]),
        (
            ("--topic-pattern", "shop.m.*", "--partition", "0", "--partition", "2"),
            ["shop.multi-3-part-0:0", "shop.multi-3-part-0:2"],
        ),
    ],
    ids=str,
)
def test_patterns_mean_what_they_mean_to_the_tool(
    unpacked: Unpacked, asked: tuple[str, ...], told: list[str]
) -> None:
    # F590
    (path,) = log_dirs(unpacked("kafka44.logs"))
    found = lines(path, *asked)
    assert [line.rpartition(":")[0] for line in found] == told


def test_json_has_the_same_as_rows(unpacked: Unpacked) -> None:
    (path,) = log_dirs(unpacked("kafka44.logs"))
    asked = (path, "--topic", "shop.idem", "--time", "earliest")
    assert run(*asked, "--format", "json")[1] == (
        '{"topic": "shop.idem", "partition": 0, "offset": 0}\n'
    )
    assert run(*asked, "--format", "csv")[1] == "topic,partition,offset\nshop.idem,0,0\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ("--time", "soon"),
            "--time: 'soon' is not valid, expected latest, earliest, max-timestamp",
        ),
        (("--topic-pattern", "("), "'(' is not a valid regular expression"),
        (("--topic-partitions", "a:x"), "TOPIC[:PARTITION]"),
        (
            ("--topic-partitions", "a", "--topic", "a"),
            "--topic-partitions cannot be used with --topic",
        ),
        (("--topic", "shop.idem", "--topic", "shop.i.*"), "--topic: 'shop.i.*'"),
        (("--topic", "a", "--topic-pattern", "b"), "--topic-pattern cannot be used with --topic"),
        (("--topic", "shop.idem,shop.multi"), "repeat --topic for each"),
        (("--partition", "1,b"), "error: --partition: '1,b'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(unpacked: Unpacked, asked: tuple[str, ...], said: str) -> None:
    (path,) = log_dirs(unpacked("kafka44.logs"))
    code, out, err = run(path, *asked)
    assert (code, out) == (2, "")
    assert said in err


def test_without_what_is_requested_there_is_no_answer(unpacked: Unpacked) -> None:
    (path,) = log_dirs(unpacked("kafka44.logs"))
    code, _, err = run(path, "--topic", "shop.iden")
    assert (code, "'shop.iden' is not valid, expected what" in err) == (2, True)
    assert "did you mean shop.idem" in err
    code, out, err = run(path, "--topic", "shop.idem", "--partition", "0", "--partition", "99")
    assert (code, out) == (2, "")
    assert "--partition: '99' is not valid, expected partitions of these topics: 0" in err


def test_what_checkpoints_know_to_be_lost_is_reported(unpacked: Unpacked, tmp_path: Path) -> None:
    # F76: the broker's checkpoint has the high watermarks 528 and 187.
    logs = tmp_path / "log-dirs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    whole = lines(str(logs), "--topic-pattern", r"shop\.tx.*")
    last = max((logs / "shop.tx-0").glob("*.log"))
    last.write_bytes(b"")
    shutil.rmtree(logs / "shop.tx.out-0")
    code, out, err = run(str(logs), "--topic-pattern", r"shop\.tx.*")
    assert code == 0
    assert set(whole) - set(out.splitlines()) == {"shop.tx:0:528", "shop.tx.out:0:187"}
    assert err.splitlines() == [
        f"missing: 1 partition that the checkpoints of {logs} name: shop.tx.out-0",
        f"{last}: position 0: missing_end: offsets {int(last.stem)} to 527 are missing: the "
        "checkpoints beside the log say that it went on to 528",
    ]
    assert run(str(logs), "--topic", "shop.idem")[2] == ""


def test_files_are_not_partitions_that_a_broker_serves(unpacked: Unpacked) -> None:
    path = next((unpacked("kafka44.logs") / "log-dirs" / "shop.tx-0").glob("*.log"))
    expected = f"error: {path}: there is no such partition; give log directories, not files\n"
    assert run(str(path)) == (3, "", expected)
