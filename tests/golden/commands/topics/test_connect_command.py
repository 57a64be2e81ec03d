"""`kafkalog connect` against what the workers' REST API said before they were killed.

Rules: docs/format.md F957 and F1250 to F1253.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from kafkalog.testing import LogDirectory
from tests.support.repository import Unpack


def run(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(kafkalog, [command, *map(str, arguments), "--processes", "1"])


def rows(command: str, *arguments: object) -> list[dict[str, Any]]:
    result = run(command, *arguments, "--format", "json")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def logs(unpacked: Unpack) -> Path:
    return unpacked("connect43.logs") / "log-dirs"


@pytest.fixture
def rest(unpacked: Unpack) -> dict[str, Any]:
    return json.loads((unpacked("connect43.golden") / "rest.json").read_text())


def test_connectors_their_states_and_configs_are_those_of_the_workers(
    logs: Path, rest: dict[str, Any]
) -> None:
    # F1250
    found = {row["connector"]: row for row in rows("connect", logs)}
    assert list(next(iter(found.values()))) == [
        field["name"] for field in table_fields("connectors")
    ]
    assert found.keys() == rest["connectors"].keys()
    for name, row in found.items():
        status = rest["connectors"][name]["status"]
        assert row["state"] == status["connector"]["state"]
        assert row["worker_id"] == status["connector"]["worker_id"]
        states = [task["state"] for task in status["tasks"]]
        assert row["tasks"] == len(states)
        assert row["tasks_running"] == states.count("RUNNING")
        assert row["tasks_failed"] == states.count("FAILED")
        config = rest["connectors"][name]["info"]["config"]
        secrets = {"database.password"}
        assert {key: value for key, value in row["config"].items() if key not in secrets} == {
            key: value for key, value in config.items() if key not in secrets
        }
    assert found["orders-source"]["config"]["database.password"] == "***"
    assert (found["orders-sink"]["target_state"], found["mirror-heartbeat"]["target_state"]) == (
        *("PAUSED", "STOPPED"),
    )
    assert found["orders-source"]["topics"] == ["orders"]


def test_tasks_have_the_states_and_traces_of_the_workers(logs: Path, rest: dict[str, Any]) -> None:
    found = {(row["connector"], row["task"]): row for row in rows("connect", logs, "--by", "task")}
    wanted = {
        (name, task["id"]): task
        for name, each in rest["connectors"].items()
        for task in each["status"]["tasks"]
    }
    assert {place: row["state"] for place, row in found.items()} == {
        place: task["state"] for place, task in wanted.items()
    }
    assert found["broken-sink", 0]["trace"] == wanted["broken-sink", 0]["trace"]


def test_source_offsets_are_those_of_the_workers(logs: Path, rest: dict[str, Any]) -> None:
    found = rows("connect", logs, "--by", "offset")
    for name, answer in rest["offsets"].items():
        own = [
            {
                "partition": json.loads(row["source_partition"]),
                "offset": json.loads(row["source_offset"]),
            }
            for row in found
            if row["connector"] == name
        ]
        assert own == answer["offsets"]


def test_what_failed_is_a_finding_and_no_secret_is_shown(logs: Path) -> None:
    result = run("connect", logs)
    assert result.exit_code == ExitCode.FINDINGS
    assert "6 connectors with 5 tasks by connect-configs, connect-offsets, connect-status" in (
        result.stdout
    )
    assert "failed: broken-sink task 0: org.apache.kafka.connect.errors.ConnectException" in (
        result.stdout
    )
    for by in ("connector", "task", "offset"):
        assert "hunter2" not in run("connect", logs, "--by", by, "--format", "json").output


def test_topics_of_other_names_are_read_if_they_are_given(tmp_path: Path) -> None:
    # F1250: with schemas, which JSON converters add by default.
    made = LogDirectory(tmp_path / "logs")
    config = {"schema": None, "payload": {"properties": {"connector.class": "A", "name": "a"}}}
    made.topic("workers").records([("connector-a", json.dumps(config)), ("x", "{}"), ("y", "z")])
    path = made.write()
    assert "--topic names those of the workers" in run("connect", path).stdout
    (row,) = rows("connect", path, "--topic", "workers")
    assert (row["connector"], row["connector_class"], row["state"]) == ("a", "A", None)
    assert "not read: 2 records that Connect did not write" in (
        run("connect", path, "--topic", "workers").stdout
    )


def test_a_deleted_connector_is_gone(tmp_path: Path) -> None:
    made = LogDirectory(tmp_path / "logs")
    config = json.dumps({"properties": {"name": "a"}})
    made.topic("connect-configs").records([("connector-a", config), ("connector-a", None)])
    made.topic("connect-status").records([("status-connector-a", '{"state": "RUNNING"}')])
    assert rows("connect", made.write()) == []


def test_members_show_what_workers_and_instances_of_streams_have(
    logs: Path, rest: dict[str, Any]
) -> None:
    # F1251, F1252
    members = rows("groups", logs, "--members")
    (worker,) = [row["work"] for row in members if row["group"] == "connect-cluster"]
    connectors, tasks = worker.split("; ")
    assert connectors == f"connectors {', '.join(sorted(rest['connectors']))}"
    of_rest = [
        f"{name}-{task['id']}"
        for name, each in rest["connectors"].items()
        for task in each["status"]["tasks"]
    ]
    assert tasks == f"tasks {', '.join(sorted(of_rest))}"
    # The topology has two parts of one partition each; the second has a store with a standby.
    assert sorted(row["work"] for row in members if row["group"] == "word-count") == [
        "tasks 0_0; standby 1_0; application.server localhost:7001",
        "tasks 1_0; standby none; application.server localhost:7002",
    ]
    (sink,) = [row for row in members if row["group"] == "connect-orders-sink"]
    assert sink["work"] is None


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        ("mm2-offset-syncs.b.internal", {"topic": "orders", "partition": 0}, {"upstreamOffset": 0}),
        (
            "a.checkpoints.internal",
            {"group": "word-count", "topic": "a.orders", "partition": 0},
            {"version": 0, "upstreamOffset": 40, "offset": 40},
        ),
        ("heartbeats", {"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"version": 0}),
    ],
)
def test_dump_decodes_the_topics_of_mirrormaker(
    logs: Path, topic: str, key: dict[str, Any], value: dict[str, Any]
) -> None:
    # F1253: orders had 40 records, all read, when the first checkpoint was written.
    dumped = rows("dump", "--deep", "--topic", topic, logs)
    first = next(row for row in dumped if row["type"] == "record")
    assert first["key"] == key
    assert {name: first["payload"][name] for name in value} == value


def test_a_topic_that_only_has_such_a_name_is_shown_as_it_is(tmp_path: Path) -> None:
    made = LogDirectory(tmp_path / "logs")
    made.topic("heartbeats").records([("a", "alive")])
    (record,) = [
        row
        for row in rows("dump", "--deep", "--topic", "heartbeats", made.write())
        if row["type"] == "record"
    ]
    assert (record["key"], record["payload"]) == ("a", "alive")
