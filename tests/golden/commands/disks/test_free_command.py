"""`kafkalog free`: what may be deleted to free space. Rules: F1154 to F1158."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.testing import LogDirectory

RECORDS = [(f"key-{number}", "v" * 50) for number in range(10)]
NEVER = {"cleanup.policy": "delete", "retention.ms": -1, "retention.bytes": -1}


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["free", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def steps(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--format", "json")[1].splitlines()]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"orders": NEVER, "users": NEVER}))
    return path


@pytest.fixture
def made(tmp_path: Path) -> LogDirectory:
    """orders-0 and users-0, each in three segments of ten records, those of orders older."""
    log_dir = LogDirectory(tmp_path / "logs")
    for name in ("orders", "users"):
        topic = log_dir.topic(name)
        for _ in range(2):
            topic.records(RECORDS)
            topic.roll()
        topic.records(RECORDS)
    return log_dir


def test_the_oldest_segments_go_first_and_never_the_last_one(
    made: LogDirectory, settings: Path
) -> None:
    # F1158
    log_dir = made.write()
    (one,) = steps(log_dir, "--topic-config", settings, "--need", 1)
    assert (one["harm"], one["topic"], one["offsets"], one["start_offset_after"]) == (
        *("oldest", "orders", 10, 10),
    )
    assert one["commands"] == [f"rm {log_dir}/orders-0/{0:020d}.*"]
    code, out, _ = run(log_dir, "--topic-config", settings, "--need", "1GiB")
    assert code == ExitCode.FINDINGS
    assert "NOT ENOUGH" in out
    every = steps(log_dir, "--topic-config", settings, "--need", "1GiB")
    assert [(step["topic"], step["start_offset_after"]) for step in every] == [
        ("orders", 20),
        ("users", 20),
    ]


def test_the_commands_free_what_they_promise(made: LogDirectory, settings: Path) -> None:
    log_dir = Path(made.write())
    before = sum(path.stat().st_size for path in log_dir.rglob("*") if path.is_file())
    (one,) = steps(log_dir, "--topic-config", settings, "--need", 1)
    for command in one["commands"]:
        subprocess.run(command, shell=True, check=True)
    after = sum(path.stat().st_size for path in log_dir.rglob("*") if path.is_file())
    assert before - after == one["bytes"]
    assert sorted(path.name for path in (log_dir / "orders-0").glob("*.log")) == [
        f"{10:020d}.log",
        f"{20:020d}.log",
    ]


def test_what_is_marked_or_past_retention_goes_before_anything_is_lost(
    made: LogDirectory, tmp_path: Path
) -> None:
    # F1155
    log_dir = Path(made.write())
    marked = log_dir / f"old-0.{'a' * 32}-delete"
    marked.mkdir()
    (marked / f"{0:020d}.log").write_bytes(bytes(100))
    configs = tmp_path / "topics.json"
    configs.write_text(json.dumps({"orders": NEVER, "users": {**NEVER, "retention.ms": 1}}))
    given = (log_dir, "--topic-config", configs, "--as-of", "2030-01-01T00:00:00Z")
    assert [step["harm"] for step in steps(*given)] == ["marked", "past_retention", "oldest"]
    assert [step["harm"] for step in steps(*given, "--need", 50)] == ["marked"]
    (first, second) = steps(*given, "--need", 200)
    assert first["commands"] == [f"rm -r {marked}"]
    assert (second["topic"], second["start_offset_after"]) == ("users", 20)


def test_directories_that_were_set_aside_are_left_alone_and_named(
    made: LogDirectory, settings: Path
) -> None:
    log_dir = Path(made.write())
    stray = log_dir / f"old-0.{'a' * 32}-stray"
    stray.mkdir()
    _, out, _ = run(log_dir, "--topic-config", settings, "--need", 1)
    assert f"left alone: {stray}" in out


def test_groups_that_have_not_read_what_is_lost_are_named(
    made: LogDirectory, settings: Path
) -> None:
    made.commit_offsets("slow", {("orders", 0): 3})
    made.commit_offsets("quick", {("orders", 0): 30})
    log_dir = made.write()
    (one,) = steps(log_dir, "--topic-config", settings, "--need", 1)
    assert one["groups"] == ["slow"]


def test_compacted_topics_and_the_brokers_own_are_never_named(made: LogDirectory) -> None:
    # F1158
    made.commit_offsets("slow", {("orders", 0): 3})
    made.write()
    configs = Path(made.write()).parent / "compacted.json"
    compacted = {**NEVER, "cleanup.policy": "compact"}
    configs.write_text(json.dumps({"orders": compacted, "users": NEVER}))
    found = steps(made.write(), "--topic-config", configs, "--need", "1GiB")
    assert {step["topic"] for step in found} == {"users"}


def test_a_partition_counts_as_replicated_where_another_broker_has_all_of_it(
    made: LogDirectory, settings: Path, tmp_path: Path
) -> None:
    # F1157
    log_dir = Path(made.write())
    other = Path(shutil.copytree(log_dir, tmp_path / "other"))
    (other / "users-0" / f"{20:020d}.log").write_bytes(b"")  # has lost its end
    given = (log_dir, "--topic-config", settings, "--replicas", other)
    found = {(step["harm"], step["topic"]) for step in steps(*given)}
    assert ("replicated", "orders") in found
    assert ("oldest", "users") in found
    assert ("replicated", "users") not in found


def test_a_replicated_partition_of_one_segment_frees_what_is_not_freed_yet(
    tmp_path: Path, settings: Path
) -> None:
    # F1157
    made = LogDirectory(tmp_path / "logs")
    made.topic("orders").records(RECORDS)
    log_dir = Path(made.write())
    other = shutil.copytree(log_dir, tmp_path / "other")
    partition = log_dir / "orders-0"
    size = sum(path.stat().st_size for path in partition.iterdir())
    (partition / f"{0:020d}.log.deleted").write_bytes(bytes(100))
    found = steps(log_dir, "--topic-config", settings, "--replicas", other)
    assert [(step["harm"], step["bytes"]) for step in found] == [
        ("marked", 100),
        ("replicated", size),
    ]


def test_topics_whose_retention_no_setting_says_are_named(made: LogDirectory) -> None:
    # F1155
    log_dir = Path(made.write())
    _, out, _ = run(log_dir)
    assert (
        "past_retention is not known of 2 topics for want of retention.bytes, retention.ms" in out
    )
    assert "no file says the cleanup.policy of " in out  # F1351
    marked = log_dir / f"old-0.{'a' * 32}-delete"
    marked.mkdir()
    (marked / f"{0:020d}.log").write_bytes(bytes(100))
    _, out, _ = run(log_dir, "--need", 50)
    assert "not known" not in out and "assumed" not in out


def test_nothing_is_harmless_for_a_cleanup_policy_that_is_assumed(
    made: LogDirectory, tmp_path: Path
) -> None:
    # F1351: server.properties has the broker's policy; a topic's own is in no file.
    log_dir = made.write()
    server = tmp_path / "server.properties"
    server.write_text("log.retention.ms=1\nlog.cleanup.policy=delete\n")
    given = (log_dir, "--server-properties", server, "--as-of", "2030-01-01T00:00:00Z")
    assert {step["harm"] for step in steps(*given)} == {"oldest"}
    text = run(*given)[1]
    assert "no file says the cleanup.policy of orders, users: the broker's default is" in text
    assert "of it is past retention if the assumed cleanup.policy is right (ASSUMED-POLICY)" in text
    assert {step["assumed_policy"] for step in steps(*given)} == {"delete"}
    configs = tmp_path / "topics.json"
    configs.write_text(json.dumps({"orders": {}, "users": {"cleanup.policy": "compact"}}))
    known = {step["topic"]: step["harm"] for step in steps(*given, "--topic-config", configs)}
    assert known == {"orders": "past_retention"}
    assert {step["assumed_policy"] for step in steps(*given, "--topic-config", configs)} == {None}


def test_segments_that_are_safe_in_the_tier_lose_nothing(unpacked: Callable[[str], Path]) -> None:
    # F1156: what a broker 4.3.1 copied.
    log_dir = unpacked("tiered43.logs") / "log-dirs"
    tier = CliRunner().invoke(
        kafkalog, ["tier", str(log_dir), "--by", "segment", "--format", "json"]
    )
    rows = [json.loads(line) for line in tier.stdout.splitlines()]
    safe = {(row["topic"], row["partition"]) for row in rows if row["state"] == "in tier"}
    found = [step for step in steps(log_dir) if step["harm"] == "in_tier"]
    assert {(step["topic"], step["partition"]) for step in found} <= safe
    assert all(step["offsets"] is None for step in found)


def test_remote_directories_are_refused() -> None:
    code, _, error = run("s3://bucket/kafka")
    assert code == ExitCode.UNREADABLE_INPUT
    assert "not a directory on a disk of this machine" in error
