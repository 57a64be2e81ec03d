"""What commands print if there is nothing to list: a sentence, not nothing or a bare header."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_key, write_record_value
from tests.support.logs.log_dirs import add_partition, log_name

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
_GROUP_METADATA = 2


def run(*arguments: object) -> Result:
    return CliRunner().invoke(kafkalog, [*map(str, arguments)], catch_exceptions=False)


def group_log_dir(folder: Path, protocol_type: str, members: int = 0) -> Path:
    """A log directory with one group, which has committed nothing."""
    member = {
        "memberId": "worker-1",
        "groupInstanceId": None,
        "clientId": "worker",
        "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 60_000,
        "sessionTimeout": 10_000,
        "subscription": b"",
        "assignment": b"",
    }
    values = {
        "protocolType": protocol_type,
        "generation": 3,
        "protocol": "sessioned",
        "leader": "worker-1",
        "currentStateTimestamp": 1_700_000_000_000,
        "members": [member] * members,
    }
    key = write_record_key(OFFSETS, _GROUP_METADATA, {"group": "cluster"})
    value = write_record_value(OFFSETS, _GROUP_METADATA, 3, values)
    partition = add_partition(folder, f"{OFFSETS}-0", 0)
    record = Record(0, 1_700_000_000_000, 0, key, value)
    (partition / log_name(0)).write_bytes(write_batch([record]))
    return folder


def test_transactional_ids_of_an_empty_log(tmp_path: Path) -> None:
    add_partition(tmp_path, f"{TRANSACTIONS}-0", 0)
    for table in ("--list", "--describe"):
        result = run("txns", tmp_path, table)
        assert result.exit_code == ExitCode.DONE
        assert result.stdout == (
            "no transactional id is known: __transaction_state has no record of one here\n"
        )
        assert run("txns", tmp_path, table, "--format", "json").stdout == ""
        assert run("txns", tmp_path, table, "--format", "csv").stdout.startswith(
            "transactional_id,"
        )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--group=cluster", "1 group without a committed offset or an assigned partition: --state"),
        ("--all-groups", "1 group without a committed offset or an assigned partition: --state"),
        ("--members", "no group has a member"),
        ("--lagging", "no group is known to lag"),
    ],
)
def test_groups_that_have_committed_nothing(option: str, said: str, tmp_path: Path) -> None:
    result = run("groups", group_log_dir(tmp_path, "connect"), option)
    assert result.exit_code == ExitCode.DONE
    assert result.stdout.startswith(said)
    assert len(result.stdout.splitlines()) == 1


@pytest.mark.parametrize("option", ["--list", "--state", "--members", "--lagging", "--all-groups"])
def test_without_any_group(option: str, tmp_path: Path) -> None:
    add_partition(tmp_path, f"{OFFSETS}-0", 0)
    assert run("groups", tmp_path, option).stdout == "no group is known\n"


@pytest.mark.parametrize(
    ("protocol_type", "members", "reason", "words"),
    [
        ("connect", 0, "no_consumers", "workers of Kafka Connect"),
        ("connect", 1, "no_consumers", "connect-CONNECTOR"),
        ("sr", 0, "no_consumers", "instances of Schema Registry"),
        ("own", 0, "no_consumers", "programs with the group protocol own"),
        ("consumer", 0, "no_members", "start one"),
        ("consumer", 1, "not_assigned", "subscribe"),
    ],
)
def test_a_group_without_consumers_is_not_advised_to_start_one(
    protocol_type: str, members: int, reason: str, words: str, tmp_path: Path
) -> None:
    # F781.
    result = run("groups", group_log_dir(tmp_path, protocol_type, members), "--why", "cluster")
    assert result.exit_code == ExitCode.DONE, result.output
    assert reason in result.stdout
    assert words in result.stdout
    assert ("start one" in result.stdout) == (reason == "no_members")
