"""`kafkalog status`: a table against the logs, as a user calls it. Rule: F934."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.delta.delta_positions import read_positions
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.parquet.parquet_table import ParquetTable
from kafkalog.testing import LogDirectory, ProducerRecord
from kafkalog.testing.topics import Topic
from kafkalog.views.planning.ingest_positions import IngestPositions

YEAR_2099_MS = 4_070_908_800_000


def run(*arguments: object) -> Result:
    return CliRunner().invoke(kafkalog, [*map(str, arguments)])


class Place:
    """Logs of topic orders, and a table of them."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.output = folder / "logs", folder / "lake"
        self.table = self.output / "ingested_records"
        self.directory = LogDirectory(self.logs)
        self.orders: Topic = self.directory.topic("orders")

    def send(self, count: int, *, times: int | None = None) -> None:
        """Send records, each in a batch of its own."""
        for _ in range(count):
            self.orders.records([ProducerRecord("k", "v", timestamp_ms=times)])

    def export(self, *arguments: object) -> None:
        self.directory.write()
        given = ("--output-dir", self.output, "--processes", "1", *arguments)
        result = run("export", self.logs, *given)
        assert result.exit_code == 0, result.output

    def status(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        """The row of the only partition that is found."""
        (row,) = self.rows(*arguments, code=code)
        return row

    def rows(self, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
        result = run("status", self.table, self.logs, "--format", "json", *arguments)
        assert result.exit_code == code, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Ten records, of which the table has all."""
    found = Place(tmp_path)
    found.send(10)
    found.export()
    return found


def waiting(row: dict[str, Any]) -> tuple[object, ...]:
    return row["status"], row["next_offset"], row["waiting_offsets"], row["next_run_offsets"]


def test_a_table_that_has_everything_is_complete(place: Place) -> None:
    assert place.status() == {
        "topic": "orders",
        "partition": 0,
        "status": "complete",
        "next_offset": 10,
        "log_start_offset": 0,
        "log_end_offset": 10,
        "waiting_offsets": 0,
        "next_run_offsets": 0,
        "next_time_ms": None,
        "detail": None,
    }
    result = run("status", place.table, place.logs)
    assert result.stdout.splitlines()[-1] == "1 partition: 1 complete; nothing waits; no findings"


def test_what_is_new_waits_for_the_next_run(place: Place) -> None:
    began_ms = place.directory.now_ms
    place.send(3)
    place.directory.write()
    row = place.status()
    assert waiting(row) == ("new", 10, 3, 3)
    assert row["next_time_ms"] == began_ms
    assert run("status", place.table, place.logs).stdout.splitlines()[-1] == (
        "1 partition: 0 complete; 3 offsets of 1 partition wait; no findings; checksums of what "
        "waits are not checked, --deep checks them"
    )


def test_what_a_run_up_to_a_time_leaves_waits_for_that_time(place: Place) -> None:
    began_ms = place.directory.now_ms
    place.send(6)
    place.export("--until-time", began_ms + 2000)
    row = place.status()
    assert waiting(row) == ("until_time", 12, 4, 4)
    assert row["detail"] == "the last run that read it ended at the time or offset it was given"
    row = place.status("--until-time", began_ms + 3000)
    assert waiting(row) == ("until_time", 12, 4, 1)
    assert row["detail"].startswith("a run with this --until-time ends at offset 13")


def test_a_record_of_the_future_that_waits_is_a_finding(place: Place) -> None:
    # F930
    place.send(1, times=YEAR_2099_MS)
    place.send(3)
    place.directory.write()
    row = place.status(code=ExitCode.FINDINGS)
    assert waiting(row) == ("future_time", 10, 4, 4)
    assert row["next_time_ms"] == YEAR_2099_MS
    assert "the next one, offset 10: 2099-01-01T00:00:00.000Z is " in row["detail"]
    assert place.status("--no-fail-on-findings")["status"] == "future_time"
    row = place.status("--until-time", place.directory.now_ms - 1000, code=ExitCode.FINDINGS)
    assert waiting(row) == ("future_time", 10, 4, 3)
    place.export()
    assert place.status()["status"] == "complete"


def test_what_is_behind_an_open_transaction_waits_for_its_end(place: Place) -> None:
    place.directory.transactional_producer("p").records(place.orders, [("k", "in doubt")])
    place.send(2)
    place.directory.write()
    row = place.status()
    assert waiting(row) == ("open_transaction", 10, 3, 0)
    assert row["detail"] == "a transaction is open from offset 10 on: kafkalog txns names it"


def test_what_is_above_the_high_watermark_waits_for_it(place: Place) -> None:
    place.send(2)
    place.directory.write()
    marks = place.logs / "replication-offset-checkpoint"
    marks.write_text(marks.read_text().replace("orders 0 12", "orders 0 11"))
    assert waiting(place.status()) == ("high_watermark", 10, 2, 1)
    # The last stable offset is never above it.
    assert waiting(place.status("--stop-at", "logEnd")) == ("high_watermark", 10, 2, 1)


def test_records_deleted_before_they_were_read_are_a_gap(place: Place) -> None:
    place.send(5)
    place.orders.delete_records(12)
    place.directory.write()
    row = place.status(code=ExitCode.FINDINGS)
    assert waiting(row) == ("gap", 10, 3, 3)
    assert "offsets 10 to 11 were deleted before they were read" in row["detail"]


def test_a_log_that_is_shorter_than_the_table_is_truncated(place: Place, tmp_path: Path) -> None:
    other = Place(tmp_path / "older")
    other.send(7)
    other.directory.write()
    result = run("status", place.table, other.logs, "--format", "json")
    row = json.loads(result.stdout)
    assert (result.exit_code, waiting(row)) == (1, ("truncated", 10, 0, 0))
    assert "the log ends at offset 7, the table at 10" in row["detail"]


def test_a_topic_that_was_made_again_is_recreated(place: Place, tmp_path: Path) -> None:
    other = LogDirectory(tmp_path / "again")
    other.topic("orders", topic_id="AAAAAAAAAAAAAAAAAAAAAQ").records([("k", "v")] * 4)
    result = run("status", place.table, other.write(), "--format", "json")
    row = json.loads(result.stdout)
    assert (result.exit_code, waiting(row)) == (1, ("recreated", 10, 4, 0))


def test_a_partition_that_is_not_in_the_logs_is_gone(place: Place, tmp_path: Path) -> None:
    other = LogDirectory(tmp_path / "others")
    other.topic("clicks").records([("k", "v")])
    result = run("status", place.table, other.write(), "--format", "json")
    row = json.loads(result.stdout)
    assert (result.exit_code, waiting(row)) == (1, ("gone", 10, 0, 0))
    assert row["log_end_offset"] is None
    assert "the logs have 1 topic more: --topic '*' shows all" in result.stderr


def test_damage_in_what_waits_is_a_finding_and_damage_before_is_not(place: Place) -> None:
    place.send(3)
    place.orders.flip_byte(4)
    place.directory.write()
    assert waiting(place.status("--deep")) == ("new", 10, 3, 3)
    place.orders.flip_byte(11)
    place.directory.write()
    # Checksums are checked with --deep only, and the last line says so.
    assert place.status()["status"] == "new"
    row = place.status("--deep", code=ExitCode.FINDINGS)
    assert waiting(row) == ("damage", 10, 3, 3)
    assert "/orders-0/" in row["detail"] and "checksum" in row["detail"]


def test_a_missing_segment_of_what_waits_is_a_finding(place: Place) -> None:
    for _ in range(3):
        place.orders.roll()
        place.send(4)
    place.directory.write()
    for file in (place.logs / "orders-0").glob(f"{14:020d}.*"):
        file.unlink()
    row = place.status(code=ExitCode.FINDINGS)
    assert waiting(row) == ("missing", 10, 12, 12)
    assert "offsets 14 to 17 are in no segment" in row["detail"]


def test_a_new_partition_is_not_read_yet_and_a_new_topic_is_only_shown_by_choice(
    place: Place,
) -> None:
    place.directory.topic("clicks").records([("k", "v")] * 2)
    place.directory.write()
    assert [row["topic"] for row in place.rows()] == ["orders"]
    rows = place.rows("--topic", "*")
    assert [(row["topic"], row["status"]) for row in rows] == [
        ("clicks", "not_read"),
        ("orders", "complete"),
    ]
    assert waiting(rows[0]) == ("not_read", None, 2, 2)
    assert place.rows("--topic-pattern", "^cl") == rows[:1]


def test_the_reason_with_findings_comes_first_and_the_detail_has_all(place: Place) -> None:
    place.send(1, times=YEAR_2099_MS)
    place.directory.transactional_producer("p").records(place.orders, [("k", "in doubt")])
    place.directory.write()
    row = place.status(code=ExitCode.FINDINGS)
    assert waiting(row) == ("future_time", 10, 2, 1)
    assert "2099" in row["detail"] and "a transaction is open from offset 11 on" in row["detail"]


def test_an_iceberg_table_says_the_same(place: Place, tmp_path: Path) -> None:
    place.output = tmp_path / "berg"
    place.export("--format", "iceberg")
    place.send(3)
    place.directory.write()
    table = tmp_path / "berg" / "kafkalog" / "ingested_records"
    result = run("status", table, place.logs, "--format", "json")
    assert (result.exit_code, waiting(json.loads(result.stdout))) == (0, ("new", 10, 3, 3))


def delta_commit(table: Path, version: int, **info: object) -> None:
    """A commit as Delta's protocol has it: a line for each action."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    actions = [{"commitInfo": info}, {"add": {"path": "part-0.parquet"}}]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text)


def positions_text(place: Place, next_offset: int) -> str:
    manifest = ParquetTable(str(place.table)).manifest()
    assert manifest is not None
    text = json.loads(manifest.positions.to_json())
    text["next_offsets"]["orders"]["0"] = next_offset
    return json.dumps(text)


def test_a_delta_table_says_the_same_without_spark(place: Place, tmp_path: Path) -> None:
    table = tmp_path / "delta"
    delta_commit(table, 0, operation="CREATE TABLE", operationParameters={})
    delta_commit(table, 1, operation="WRITE", userMetadata=positions_text(place, 6))
    delta_commit(table, 2, operation="WRITE", userMetadata=positions_text(place, 8))
    delta_commit(table, 3, operation="OPTIMIZE", operationParameters={})
    place.table = table
    assert waiting(place.status()) == ("new", 8, 2, 2)
    # A RESTORE takes positions back.
    delta_commit(table, 4, operation="RESTORE", operationParameters={"version": "1"})
    assert waiting(place.status()) == ("new", 6, 4, 4)


def test_the_state_of_reconstruct_state_has_such_positions_too(
    place: Place, tmp_path: Path
) -> None:
    text = json.loads(positions_text(place, 7))
    state = {
        **{name: text[name] for name in ("cluster_id", "isolation_level", "next_offsets")},
        **{name: text[name] for name in ("leader_epochs", "topic_ids")},
        "job": "kafkalog reconstruct_state",
        "keep_tombstones": False,
        "log_start_offsets": {"orders": {"0": 0}},
    }
    table = tmp_path / "state"
    delta_commit(table, 0, operation="MERGE", userMetadata=json.dumps(state))
    place.table = table
    assert waiting(place.status()) == ("new", 7, 3, 3)


@pytest.mark.parametrize("text", ['{"commitInfo": 7}\n', "{", "[1]\n", '{"add": {}}\n', ""])
def test_a_delta_log_without_positions_is_an_error(place: Place, tmp_path: Path, text: str) -> None:
    log = tmp_path / "delta" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text(text)
    result = run("status", tmp_path / "delta", place.logs)
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "_delta_log" in result.stderr


def test_positions_are_read_of_what_a_run_of_kafkalog_commits(place: Place) -> None:
    delta_commit(place.output, 0, operation="WRITE", userMetadata=positions_text(place, 9))
    found = read_positions(OutputDirectory(str(place.output)), IngestPositions.from_json)
    assert found.next_offsets == {("orders", 0): 9}


def test_what_is_no_table_is_an_error_that_names_tables(place: Place, tmp_path: Path) -> None:
    result = run("status", place.output, place.logs)
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert f"such as {place.table}" in result.stderr
    for arguments in ((), (place.table,), ("--catalog", "lake", place.logs)):
        assert run("status", *arguments).exit_code == ExitCode.WRONG_ARGUMENTS
    shutil.rmtree(place.logs)
    assert run("status", place.table, place.logs).exit_code == ExitCode.UNREADABLE_INPUT
    assert run("status", place.table, tmp_path, "--topic", "nope").exit_code != ExitCode.DONE


def test_nothing_is_written(place: Place) -> None:
    def files() -> dict[str, int]:
        paths = [path for path in place.logs.parent.rglob("*") if path.is_file()]
        return {str(path): path.stat().st_mtime_ns for path in paths}

    place.send(2)
    place.directory.write()
    before = files()
    place.status()
    assert files() == before
