"""`kafkalog diff`: what changed between two copies of log directories. Rules: F1150 to F1153."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from kafkalog.testing import LogDirectory
from tests.support.repository import Unpack

TOPIC_ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAEQ", "AAAAAAAAAAAAAAAAAAAAEg"
RECORDS = [(f"key-{number}", f"value-{number}") for number in range(10)]


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["diff", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def rows(before: object, after: object, by: str, *arguments: object) -> list[dict[str, Any]]:
    _, out, _ = run(before, after, "--by", by, "--format", "json", *arguments)
    return [json.loads(line) for line in out.splitlines()]


class Copies:
    """A log directory that is written twice: `before`, and what `change` makes of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.log_dir = LogDirectory(tmp_path / "live")
        self.orders = self.log_dir.topic("orders", topic_id=TOPIC_ID)
        self.orders.records(RECORDS)
        self._tmp_path = tmp_path

    def copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.log_dir.write(), self._tmp_path / name))


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path)


def test_a_copy_does_not_differ_from_itself(copies: Copies) -> None:
    before = copies.copy("before")
    (row,) = rows(before, copies.copy("after"), "partition", "--all")
    assert list(row) == [field["name"] for field in table_fields("log_changes")]
    assert (row["change"], row["records_added"], row["records_removed"]) == ("same", 0, 0)
    assert rows(before, before, "topic") == []
    code, out, _ = run(before, before)
    assert code == ExitCode.DONE
    assert "1 partition compared, 1 the same: 0 records came, 0 went" in out


def test_records_that_came_and_went_are_counted(copies: Copies) -> None:
    # F1150: 5 of 10 were deleted, and 10 came.
    before = copies.copy("before")
    copies.orders.roll()
    copies.orders.records(RECORDS)
    copies.orders.delete_records(10)
    copies.orders.records([("a", "1")])
    (row,) = rows(before, copies.copy("after"), "partition")
    assert row["change"] == "grown"
    assert (row["records_added"], row["records_removed"]) == (11, 10)
    assert (row["start_offset_before"], row["start_offset"]) == (0, 10)
    assert (row["end_offset_before"], row["end_offset"]) == (10, 21)


def test_markers_of_transactions_are_not_counted(copies: Copies) -> None:
    before = copies.copy("before")
    shop = copies.log_dir.transactional_producer("shop")
    shop.records(copies.orders, [("a", "1"), ("b", "2")])
    shop.commit()
    found = rows(before, copies.copy("after"), "partition")
    (row,) = [row for row in found if row["topic"] == "orders"]
    assert (row["records_added"], row["end_offset"]) == (2, 13)


def test_a_log_that_ends_earlier_is_truncated(copies: Copies) -> None:
    # F1151
    before = copies.copy("before")
    copies.orders.records([("later", "1")])
    code, out, _ = run(copies.copy("after"), before)
    assert code == ExitCode.FINDINGS
    assert "truncated: the end of the earlier copy is not in the later one: orders-0 from " in out
    (row,) = rows(copies.copy("again"), before, "partition")
    assert (row["change"], row["continues_until"], row["records_removed"]) == ("truncated", 10, 1)


def test_other_records_at_the_same_offsets_are_named(copies: Copies, tmp_path: Path) -> None:
    # F1151, F927: no leader epoch explains it.
    before = copies.copy("before")
    other = LogDirectory(tmp_path / "other")
    other.topic("orders", topic_id=TOPIC_ID).records(
        [(key, f"other {value}") for key, value in RECORDS]
    )
    code, out, _ = run(before, other.write())
    assert code == ExitCode.FINDINGS
    assert "other records at the same offsets" in out
    (row,) = rows(before, other.write(), "partition")
    assert (row["change"], row["continues_until"]) == ("rewritten", 0)
    assert (row["records_added"], row["records_removed"]) == (10, 10)


def test_a_topic_that_was_created_again_shares_no_record(copies: Copies, tmp_path: Path) -> None:
    # F1150: its records are the same bytes, and they are not the same records.
    other = LogDirectory(tmp_path / "other")
    other.topic("orders", topic_id=OTHER_ID).records(RECORDS)
    code, out, _ = run(copies.copy("before"), other.write())
    assert code == ExitCode.FINDINGS
    assert "deleted and created again, with another topic id: orders-0" in out
    (row,) = rows(copies.copy("again"), other.write(), "partition")
    assert (row["records_added"], row["records_removed"]) == (10, 10)


def test_a_directory_that_is_gone_is_a_finding_unless_the_topic_was_deleted(copies: Copies) -> None:
    # F1152
    copies.log_dir.topic("users").records(RECORDS)
    before = copies.copy("before")
    after = copies.copy("after")
    shutil.rmtree(after / "users-0")
    code, out, _ = run(before, after)
    assert code == ExitCode.FINDINGS
    assert "not in the later copy: users-0" in out
    assert "not compared: topics, configs and ACLs: the later copy has no __cluster_meta" in out


def test_records_that_are_missing_in_the_middle_are_not_taken_for_deleted(copies: Copies) -> None:
    # F1151: neither the start of the log nor the cleaner explains it.
    copies.orders.roll()
    copies.orders.records(RECORDS)
    before, after = copies.copy("before"), copies.copy("after")
    (after / "orders-0" / f"{0:020d}.log").write_bytes(b"")
    code, out, _ = run(before, after)
    assert code == ExitCode.FINDINGS
    assert "records are missing in the middle of the log, which was not cleaned: orders-0" in out


def test_what_the_cleaner_has_removed_is_no_loss(copies: Copies) -> None:
    copies.orders.records([("key-1", "newer")])
    before = copies.copy("before")
    copies.orders.compact()
    (row,) = rows(before, copies.copy("after"), "partition")
    assert (row["change"], row["records_removed"]) == ("shortened", 1)


def test_commits_that_moved_came_and_went(copies: Copies) -> None:
    # F1153
    copies.log_dir.commit_offsets("billing", {("orders", 0): 7})
    copies.log_dir.commit_offsets("reports", {("orders", 0): 7})
    copies.log_dir.commit_offsets("archive", {("orders", 0): 3})
    before = copies.copy("before")
    copies.log_dir.commit_offsets("billing", {("orders", 0): 10})
    copies.log_dir.commit_offsets("reports", {("orders", 0): 5})
    copies.log_dir.commit_offsets("archive", {("orders", 0): None})
    copies.log_dir.commit_offsets("search", {("orders", 0): 1})
    after = copies.copy("after")
    found = rows(before, after, "group")
    assert [(row["group_id"], row["change"], row["records_passed"]) for row in found] == [
        ("archive", "gone", None),
        ("billing", "moved", 3),
        ("reports", "moved_back", -2),
        ("search", "new", None),
    ]
    said = "(archive, billing, reports, search)"
    for by, hint in (("topic", ": --by group"), ("group", "")):
        result = CliRunner().invoke(kafkalog, ["diff", str(before), str(after), "--by", by])
        assert f"{said}{hint}\n" in result.output


def test_damage_is_named_and_not_compared(copies: Copies) -> None:
    before = copies.copy("before")
    copies.orders.records([("a", "1")])
    after = copies.copy("after")
    log = after / "orders-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[16] ^= 0xFF  # the magic of the first batch
    log.write_bytes(data)
    _, out, _ = run(before, after)
    assert "outside sound batches, in orders-0: kafkalog check says what they are" in out


def test_changes_of_the_metadata_are_those_that_its_records_made(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1153: the earlier copy of a real broker's directory ends where the log was half as long.
    (checkpoint,) = unpacked("kafka44.logs").rglob("meta.properties")
    after = checkpoint.parent
    before = Path(shutil.copytree(after, tmp_path / "before"))
    metadata = before / "__cluster_metadata-0"
    for snapshot in metadata.glob("*.checkpoint"):
        if snapshot.name != f"{0:020d}-{0:010d}.checkpoint":
            snapshot.unlink()
    first, *later = sorted(metadata.glob("*.log"))
    for path in later:
        path.unlink()
    data = first.read_bytes()
    end = 0
    while end < len(data) // 2:
        end += 12 + int.from_bytes(data[end + 8 : end + 12], "big")
    first.write_bytes(data[:end])
    found = rows(before, after, "metadata")
    offset = int.from_bytes(data[end : end + 8], "big")
    made = CliRunner().invoke(
        kafkalog, [*("metadata", str(after), "--diff", str(offset), "end", "--format", "json")]
    )
    changes = [row for row in map(json.loads, made.stdout.splitlines()) if row["kind"] == "topic"]
    deleted = {row["name"] for row in changes if row["change"] == "deleted"}
    created = {row["name"] for row in changes if row["change"] == "created"} - deleted
    assert created
    assert created == {
        row["name"] for row in found if (row["kind"], row["change"]) == ("topic", "created")
    }


def test_topics_are_checked_before_anything_is_read(copies: Copies) -> None:
    before = copies.copy("before")
    code, _, error = run(before, before, "--topic", "order")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "orders" in error


def test_share_groups_moved_too(unpacked: Unpack) -> None:
    """F780: what is below the begin of a share group was acknowledged, by the ledger of the one
    that acknowledged."""
    nodes = [unpacked("restore44.logs") / f"snapshots/node{node}/data" for node in (1, 3)]
    moved = [row for row in rows(nodes[0], nodes[1], "group") if row["group_id"] == "g-share"]
    assert [row["partition"] for row in moved] == [0, 1, 2, 3]
    ledger = (unpacked("restore44.golden") / "ledgers/share.jsonl").read_text().splitlines()
    deeds = [json.loads(line) for line in ledger]
    done = {(deed["partition"], deed["offset"]) for deed in deeds if deed["act"] != "release"}
    for row in moved:
        assert row["committed_offset_before"] < row["committed_offset"]
        assert {(row["partition"], offset) for offset in range(row["committed_offset"])} <= done
