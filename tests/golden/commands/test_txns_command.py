"""`kafkalog txns` against what kafka-transactions listed and the Admin client described."""

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.logs.damageable_logs import write_hanging_transaction

Unpacked = Callable[[str], Path]
START_MS = 1_700_000_000_000
# The last batch of the transaction in `hung` that has not ended.
LAST_MS = START_MS + 13
MINUTE_MS = 60_000


def log_dirs(logs: Path) -> list[str]:
    return sorted(str(path.parent) for path in logs.rglob("meta.properties"))


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["txns", *map(str, arguments), "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    assert code in (0, 1, 3)
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_every_line_of_list_is_that_of_the_tool(unpacked: Unpacked, name: str) -> None:
    lines = (unpacked(f"{name}.golden") / "tools" / "transactions_list.txt").read_text()
    told = {
        (words[0], int(words[2]), words[3]): int(words[1])
        for words in map(str.split, lines.splitlines()[1:])
    }
    found = {
        (row["transactional_id"], row["producer_id"], row["state"]): row["coordinator_id"]
        for row in rows(*log_dirs(unpacked(f"{name}.logs")), "--list")
    }
    assert found.keys() == told.keys()
    # Who led the topic is in KRaft's metadata only.
    if name == "kafka44":
        assert found == told


def test_every_id_is_described_as_the_admin_client_described_it(unpacked: Unpacked) -> None:
    golden = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["transactions"]
    described = {
        row["transactional_id"]: row
        for row in rows(*log_dirs(unpacked("kafka44.logs")), "--describe")
    }
    assert described.keys() == golden.keys()
    for transactional_id, answer in golden.items():
        row, told = described[transactional_id], answer["describe"]
        numbers = re.search(r"producerEpoch=(\d+), transactionTimeoutMs=(\d+)", told)
        partitions = re.search(r"topicPartitions=\[(.*)\]", told)
        assert numbers is not None
        assert partitions is not None
        assert (row["state"], row["producer_id"]) == (answer["state"], answer["producerId"])
        assert (row["producer_epoch"], row["timeout_ms"]) == tuple(map(int, numbers.groups()))
        assert set(row["topic_partitions"].split(",")) == set(partitions[1].split(", "))


def test_an_end_that_is_missing_may_have_ended_transactions(
    unpacked: Unpacked, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F76: what is left is sound, and says that transactions are open that are not. The broker's
    # checkpoint has the high watermarks 528 and 187.
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    last = max((logs / "shop.tx-0").glob("*.log"))
    last.write_bytes(b"")
    for path in (logs / "shop.tx.out-0").glob("*.log"):
        path.unlink()
    run(logs, "--topic", "shop.tx", "--topic", "shop.tx.out")
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [line.split("; ")[0] for line in warnings] == [
        f"{last}: position 0: missing_end: offsets {int(last.stem)} to 527 are missing: the "
        "checkpoints beside the log say that it went on to 528",
        f"{logs / 'shop.tx.out-0'}: position 0: missing_end: offsets 0 to 186 are missing: the "
        "checkpoints beside the log say that it went on to 187",
    ]


def test_what_is_open_holds_its_partition_back(unpacked: Unpacked) -> None:
    paths = log_dirs(unpacked("kafka44.logs"))
    code, out, err = run(*paths)
    assert (code, len(err.splitlines())) == (0, 1)
    assert err.startswith("times count to now")  # F1352
    assert out.splitlines()[-1].endswith("3 open, 0 hanging; 3 partitions held back")
    held = {
        (row["topic"], row["partition"]): row["holder_transactional_id"]
        for row in rows(*paths, "--stable-offsets")
        if row["offsets_held_back"]
    }
    assert held == {
        ("shop.tx", 1): "shop.tid-hanging",
        ("shop.tx.out", 0): "shop.tid-pendoff",
        ("__consumer_offsets", 6): "shop.tid-pendoff",
    }
    assert {
        (row["topic"], row["partition"]): row["transactional_id"] for row in rows(*paths)
    } == held


def test_what_is_open_began_when_its_coordinator_says(unpacked: Unpacked) -> None:
    # F646; its producers' clocks were years behind.
    golden = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["transactions"]
    paths = log_dirs(unpacked("kafka44.logs"))
    at_ms = 1_795_250_000_000
    found = rows(*paths, "--as-of", at_ms)
    for row in found:
        told = golden[row["transactional_id"]]["describe"]
        started = re.search(r"transactionStartTimeMs=OptionalLong\[(\d+)\]", told)
        assert started is not None
        assert row["started_ms"] == int(started[1])
        assert row["duration_ms"] == at_ms - int(started[1])
    assert len(found) == 3
    assert {row["started_ms"] for row in rows(*paths, "--all") if row["outcome"] != "open"} == {
        None
    }


@pytest.fixture
def hung(tmp_path: Path) -> Path:
    """A log directory with a transaction that has not ended."""
    assert write_hanging_transaction(tmp_path / "logs", START_MS) == LAST_MS
    return tmp_path / "logs"


def test_a_hanging_transaction_is_a_finding(hung: Path) -> None:
    # F216
    asked = (hung, "--find-hanging", "--max-transaction-timeout", 1, "--as-of")
    assert rows(*asked, LAST_MS + MINUTE_MS) == []
    assert run(*asked, LAST_MS + MINUTE_MS)[0] == 0
    (row,) = rows(*asked, LAST_MS + MINUTE_MS + 1)
    assert (row["topic"], row["partition"], row["producer_id"], row["first_offset"]) == (
        *("orders", 0, 9, 12),
    )
    code, out, _ = run(*asked, LAST_MS + MINUTE_MS + 1)
    assert (code, out.splitlines()[-1]) == (
        1,
        "3 transactions, counted in each partition: 1 committed, 1 aborted, 0 open, 1 hanging; "
        "1 partition held back",
    )


def test_bytes_that_are_not_a_batch_are_named_without_an_offset(
    hung: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F63: zeros in place of the first header
    log = hung / "orders-0" / f"{0:020d}.log"
    log.write_bytes(bytes(200) + log.read_bytes()[200:])
    run(hung)
    assert any(line.startswith(f"{log}: position 0: zeros: ") for line in caplog.messages)


def test_without_the_coordinators_topic_nothing_hangs(hung: Path) -> None:
    *_, last = rows(hung / "orders-0", "--all")
    assert (last["outcome"], last["reason"]) == ("open", "unknown")
    code, _, err = run(hung / "orders-0", "--list")
    assert (code, "there is no partition of __transaction_state" in err) == (3, True)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_whose_coordinator_may_be_missing_does_not_hang(
    unpacked: Unpacked, tmp_path: Path, number: int
) -> None:
    # F216, F940. kafka-transactions lists the ids of all three as known to their coordinators.
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    shutil.rmtree(logs / f"__transaction_state-{number}")
    code, out, err = run(logs)
    assert code == 3
    assert out.splitlines()[-1].endswith("3 open, 0 hanging; 3 partitions held back")
    assert f"missing: __transaction_state-{number}: " in err
    assert f"__transaction_state-{number}: offsets 0 to " in err
    assert {row["reason"] for row in rows(logs)} <= {"known", "unknown"}


def test_what_a_coordinators_lost_end_may_know_does_not_hang(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F940: with half of its log a coordinator seems to know nothing of the partition, or of the id.
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    for log in logs.glob("__transaction_state-*/*.log"):
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    code, out, err = run(logs)
    assert code == 3
    assert out.splitlines()[-1].endswith("3 open, 0 hanging; 3 partitions held back")
    assert err.count("are missing: the checkpoints of ") == 3


def test_ids_that_a_coordinators_lost_end_may_have_are_not_unknown(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F940
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    assert run(logs, "--list")[0] == 0
    for log in logs.glob("__transaction_state-*/*.log"):
        log.write_bytes(b"")
    code, out, err = run(logs, "--list")
    assert (code, "no transactional id is known" in out) == (3, True)
    assert err.count("are missing: the checkpoints of ") == 3
    for table in ("--list", "--describe", "--open"):
        code, _, err = run(logs, table, "--transactional-id", "shop.tid-hanging")
        assert (
            code,
            "say nothing of transactional id shop.tid-hanging, and others may: " in err,
        ) == (3, True)


def test_a_log_directory_without_its_clusters_name_makes_nothing_hang(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F216, F82: a broker's two log directories, and one has lost its meta.properties.
    logs = tmp_path / "logs"
    shutil.copytree(unpacked("kafka39zk.logs") / "log-dirs", logs)
    paths = [logs / "d1", logs / "d2"]
    open_ids = {row["transactional_id"] for row in rows(*paths)}
    (logs / "d2" / "meta.properties").unlink()
    code, out, err = run(*paths)
    assert code == 0
    assert out.splitlines()[-1].endswith("3 open, 0 hanging; 3 partitions held back")
    words = "meta.properties: transactions unknown to the coordinators here are not called hanging"
    assert words in err
    assert {row["transactional_id"] for row in rows(*paths)} <= open_ids | {None}


def test_of_one_topic_only_its_transactions_are_reported(unpacked: Unpacked) -> None:
    paths = log_dirs(unpacked("kafka44.logs"))
    assert {row["topic"] for row in rows(*paths, "--all", "--topic", "shop.tx")} == {"shop.tx"}
    (row,) = rows(*paths, "--transactional-id", "shop.tid-hanging")
    assert (row["topic"], row["reason"]) == ("shop.tx", "known")


def test_an_unknown_id_is_a_wrong_argument(unpacked: Unpacked) -> None:
    code, _, err = run(*log_dirs(unpacked("kafka44.logs")), "--list", "--transactional-id", "x")
    assert (code, "ids of the log directories: shop." in err) == (2, True)


def test_a_replica_that_is_behind_makes_nothing_hang(unpacked: Unpacked, tmp_path: Path) -> None:
    # F216: another broker's disk, copied before the last marker of shop.tx-0 was there.
    (whole,) = log_dirs(unpacked("kafka44.logs"))
    behind = tmp_path / "behind"
    shutil.copytree(Path(whole) / "shop.tx-0", behind / "shop.tx-0")
    properties = (Path(whole) / "meta.properties").read_text()
    (behind / "meta.properties").write_text(re.sub("node.id=.*", "node.id=9", properties))
    log = max((behind / "shop.tx-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-78])
    assert [row["outcome"] for row in rows(behind)] == ["open"]
    at = "--as-of", "2026-11-22T00:00:00Z"
    for table in ((), ("--all",), ("--stable-offsets",)):
        assert rows(whole, behind, *at, *table) == rows(whole, *at, *table)
    assert run(whole, behind, *at)[:2] == run(whole, *at)[:2]


def test_an_old_copy_is_told_apart_from_now(unpacked: Unpacked) -> None:
    # F1352: open transactions of this copy, whose durations grow with the clock.
    paths = log_dirs(unpacked("kafka44.logs"))
    _, _, err = run(*paths)
    assert "times count to now, and the newest record of __transaction_state is of 2026-" in err
    moment = err.split("give --as-of ")[1].split()[0]
    assert "times count to now" not in run(*paths, "--as-of", moment)[2]


def test_what_the_coordinator_does_about_open_transactions(unpacked: Unpacked) -> None:
    """F1362: by the ledger tx-hang was left open; the broker's own log has its timeout."""
    logs = unpacked("restore44.logs") / "snapshots"
    disks = sorted(logs.glob("node*/data"))
    ledger = (unpacked("restore44.golden") / "ledgers/txns.jsonl").read_text().splitlines()
    left = [deed for deed in map(json.loads, ledger) if deed["outcome"] == "open"]
    assert {deed["tx"].rpartition(":")[0] for deed in left} == {"tx-hang"}
    _, out, _ = run(*disks)
    (line,) = (line for line in out.splitlines() if line.startswith("tx-hang: "))
    assert line.startswith("tx-hang: open past its timeout of 10 min: its coordinator aborts it")
    (row,) = (row for row in rows(*disks, "--open") if row["transactional_id"] == "tx-hang")
    assert line.endswith(f"{row['topic']}-{row['partition']} at offset {row['first_offset']}")
    _, out, _ = run(*disks, "--find-hanging")
    is_open = len(rows(*disks, "--open"))
    end = f"without this option {is_open} open are listed"
    assert out == f"no transaction hangs, by what is here; {end}\n"
    # At a past time the coordinator has not yet done it.
    _, out, _ = run(*disks, "--as-of", "2026-11-25T19:48:50Z")
    assert "aborts it" not in out
