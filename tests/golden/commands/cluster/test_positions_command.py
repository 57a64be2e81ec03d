"""`kafkalog positions` against what Spark's source and MirrorMaker had read of a broker 4.4.0:
F1238 to F1243."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.repository import Unpack

Row = dict[str, Any]


@pytest.fixture(scope="module")
def unpacked_set(unpacked: Unpack) -> Path:
    return unpacked("positions44.logs")


@pytest.fixture(scope="module")
def deeds(unpacked: Unpack) -> list[Row]:
    found: list[Row] = json.loads((unpacked("positions44.golden") / "deeds.json").read_text())
    return found


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["positions", *map(str, arguments), "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[Row]:
    code, out, _ = run(*arguments, "--format", "json", "--no-fail-on-findings")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def checkpoint(folder: Path, name: str) -> Path:
    return folder / "outside" / name / "checkpoint"


def test_where_spark_is(unpacked_set: Path, deeds: list[Row]) -> None:
    # F1240
    log_dir = unpacked_set / "log-dirs"
    found = rows(checkpoint(unpacked_set, "early"), checkpoint(unpacked_set, "late"), log_dir)
    by_place = {
        (Path(row["kept_in"]).parent.name, row["topic"]): row
        for row in found
        if row["keeper"] == "spark"
    }
    read = [deed for deed in deeds if deed["deed"] == "spark"]
    assert {place: row["next_offset"] for place, row in by_place.items()} == {
        (deed["checkpoint"], deed["topic"]): deed["position"] for deed in read
    }
    assert {row["batch"] for row in by_place.values()} == {0}
    (end,) = [deed["log_end"] for deed in deeds if deed["deed"] == "end"]
    (retention,) = [deed for deed in deeds if deed["deed"] == "retention"]
    late = by_place["late", "orders"]
    assert (late["status"], late["records_behind"], late["log_end_offset"]) == ("behind", 20, end)
    early = by_place["early", "orders"]
    assert early["status"] == "deleted"
    assert early["deleted_records"] == retention["log_start"] - early["next_offset"]
    # The ledger notes the retention two seconds after the log lost its beginning, or later.
    assert 0 < retention["at_ms"] - early["deleted_before_ms"] < 10_000
    gone = by_place["early", "gone"]
    assert (gone["status"], gone["records_behind"]) == ("topic_made_again", None)


def test_a_topic_made_again_is_ahead_where_no_metadata_says_so(
    unpacked_set: Path, tmp_path: Path
) -> None:
    log_dir = Path(shutil.copytree(unpacked_set / "log-dirs", tmp_path / "log-dirs"))
    shutil.rmtree(log_dir / "__cluster_metadata-0")
    (row,) = [
        row
        for row in rows(checkpoint(unpacked_set, "early"), log_dir)
        if (row["keeper"], row["topic"]) == ("spark", "gone")
    ]
    assert (row["status"], row["ahead_by"]) == ("ahead", 25)
    shutil.rmtree(log_dir / "gone-0")
    found = rows(checkpoint(unpacked_set, "early"), log_dir)
    assert {row["status"] for row in found if row["topic"] == "gone"} == {"no_log"}


def test_where_mirror_maker_is(unpacked_set: Path, deeds: list[Row]) -> None:
    # F1238 and F1239: the copy has every committed record of orders from the log's start on.
    found = rows(unpacked_set / "log-dirs")
    (source,) = [row for row in found if row["keeper"] == "connect"]
    mirrored = {deed["topic"]: deed["position"] for deed in deeds if deed["deed"] == "mirrored"}
    assert source["name"] == "MirrorSourceConnector of cluster copy"
    assert source["topic"] == "orders"
    assert source["next_offset"] - source["log_start_offset"] == mirrored["copy.orders"]
    (sync,) = [row for row in found if row["keeper"] == "mirror_sync"]
    assert sync["next_offset"] == source["next_offset"]
    assert sync["name"] == f"copied up to offset {mirrored['copy.orders'] - 1} of the copy"
    groups = {row["name"].split(",")[0]: row for row in found if row["keeper"] != "connect"}
    assert groups["group steady"]["topic"] == "copy.orders"
    assert groups["group steady"]["next_offset"] == mirrored["copy.orders"]
    assert groups["group steady"]["status"] == "at_end"
    _, out, _ = run(unpacked_set / "log-dirs")
    assert "mm2-offsets.copy.internal: 6 keys about something else" in out


def test_a_cluster_of_connect_s_workers(unpacked: Unpack) -> None:
    # F1238: MirrorMaker's connectors in a cluster of workers, which had copied 60 records.
    (log_dir,) = {path.parent for path in unpacked("connect43.logs").rglob("meta.properties")}
    found = {row["keeper"]: row for row in rows(log_dir)}
    assert found["connect"]["name"] == "mirror-source of cluster a"
    for keeper, topic in (("connect", "orders"), ("mirror_sync", "orders")):
        row = found[keeper]
        assert (row["topic"], row["next_offset"], row["status"]) == (topic, 60, "at_end")
    assert found["mirror_checkpoint"]["topic"] == "a.orders"


def test_the_exit_code_and_the_sentences(unpacked_set: Path) -> None:
    log_dir = unpacked_set / "log-dirs"
    code, out, _ = run(checkpoint(unpacked_set, "early"), log_dir)
    assert code == 1
    assert "gone-0: position 30 is of an earlier topic of this name: it was made again at" in out
    assert "orders-0: 190 messages after position 100 were deleted, by 2026-" in out
    assert "1 topic_made_again, 1 deleted, " in out
    assert run(checkpoint(unpacked_set, "late"), log_dir)[0] == 0


def test_a_batch_that_is_planned_and_not_committed(unpacked_set: Path, tmp_path: Path) -> None:
    # F1240: Spark writes offsets/1 before the batch, commits/1 after it.
    copied = Path(shutil.copytree(checkpoint(unpacked_set, "late"), tmp_path / "checkpoint"))
    planned = (copied / "offsets" / "0").read_text().replace('"0":700', '"0":715')
    (copied / "offsets" / "1").write_text(planned)
    (row,) = [row for row in rows(copied, unpacked_set / "log-dirs") if row["keeper"] == "spark"]
    assert (row["batch"], row["next_offset"], row["planned_offset"]) == (0, 700, 715)
    _, out, _ = run(copied, unpacked_set / "log-dirs")
    assert "batch 1 is planned and not committed" in out
    # Nothing is committed: the first batch begins where the source began.
    (copied / "commits" / "0").unlink()
    (copied / "offsets" / "1").unlink()
    (row,) = [row for row in rows(copied, unpacked_set / "log-dirs") if row["keeper"] == "spark"]
    assert (row["batch"], row["next_offset"], row["planned_offset"]) == (None, 290, 700)


def test_what_cannot_be_compared_is_refused(unpacked_set: Path, tmp_path: Path) -> None:
    code, _, err = run(checkpoint(unpacked_set, "early"))
    assert (code, "give the log directories of the brokers too" in err) == (3, True)
    made = LogDirectory(tmp_path / "logs")
    made.topic("orders").records([ProducerRecord("a", b"b")])
    code, _, err = run(made.write())
    assert (code, "no position in a topic there" in err) == (3, True)
    copied = Path(shutil.copytree(checkpoint(unpacked_set, "late"), tmp_path / "checkpoint"))
    (copied / "offsets" / "0").write_bytes(b"\0\0\0")
    code, _, err = run(copied, unpacked_set / "log-dirs")
    assert (code, "offsets/0 is not a batch of a query" in err) == (3, True)


@pytest.mark.parametrize("given", ["early", ".", "latter", "early/nothing"])
def test_a_path_near_a_checkpoint_is_answered_by_it(unpacked_set: Path, given: str) -> None:
    # Its parent, the parent of that, a sibling that is not there, and one that has nothing.
    outside = checkpoint(unpacked_set, "early").parent.parent
    code, _, err = run(outside / given, unpacked_set / "log-dirs")
    assert (code, err.count("\n")) == (3, 1)
    assert "neither logs nor positions are there; did you mean" in err
    assert str(checkpoint(unpacked_set, "early")) in os.path.normpath(err)


def test_a_misspelt_topic_of_connect_is_refused(unpacked_set: Path) -> None:
    code, _, error = run(unpacked_set / "log-dirs", "--connect-topic", "no-such")
    assert (code, "--connect-topic: 'no-such' is not valid" in error) == (2, True)


def test_connect_s_topic_can_have_another_name(tmp_path: Path) -> None:
    # F1238: the offset of the last record that was passed on.
    made = LogDirectory(tmp_path / "logs")
    made.topic("orders").records([ProducerRecord(str(number), b"b") for number in range(9)])
    key = ["copier", {"topic": "orders", "partition": 0}]
    other = ["jdbc", {"table": "customers"}]
    made.topic("positions-of-connect").records(
        [
            ProducerRecord(json.dumps(key), json.dumps({"offset": 2}).encode()),
            ProducerRecord(json.dumps(key), json.dumps({"offset": 4}).encode()),
            ProducerRecord(json.dumps(other), json.dumps({"incrementing": 7}).encode()),
            ProducerRecord("no list", b"{}"),
        ]
    )
    log_dir = made.write()
    given = (log_dir, "--connect-topic", "positions-of-connect")
    (row,) = rows(*given)
    assert (row["name"], row["topic"], row["next_offset"]) == ("copier", "orders", 5)
    assert (row["status"], row["records_behind"]) == ("behind", 4)
    _, out, _ = run(*given)
    assert "1 key about something else" in out
    assert "1 record cannot be read" in out
