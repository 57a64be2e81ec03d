"""`kafkalog recover` on all damaged copies of a log at once, against what a broker did to them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.schemas import table_fields
from kafkalog.testing import LogDirectory
from tests.support.golden.damaged_log_dirs import broker_actions, one_log_dir
from tests.support.repository import EXAMPLES, Unpack


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["recover", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def plans(*arguments: object) -> tuple[int, dict[str, dict[str, Any]]]:
    code, out, _ = run(*arguments, "--format", "json")
    return code, {row["topic"]: row for row in map(json.loads, out.splitlines())}


@pytest.fixture(scope="module")
def said(unpacked: Unpack) -> dict[str, dict[str, Any]]:
    return broker_actions(unpacked("unclean.golden"))


@pytest.fixture
def log_dir(unpacked: Unpack, said: dict[str, dict[str, Any]], tmp_path: Path) -> Path:
    return one_log_dir(unpacked("unclean.logs") / "variants", said, tmp_path / "logs")


def test_the_plan_is_what_a_broker_did_to_each_copy(
    log_dir: Path, said: dict[str, dict[str, Any]]
) -> None:
    # F113 to F124; T3, T4.
    code, rows = plans(log_dir, "--index-interval-bytes", "1024")
    assert code == 1
    ends = {name: row["log_end_offset"] for name, row in rows.items()}
    assert ends == {name: told.get("consume", {}).get("latest") for name, told in said.items()}
    starts = {name: row["broker_starts"] for name, row in rows.items()}
    assert starts == {name: told["broker_started"] for name, told in said.items()}


def test_json_and_csv_have_all_columns_of_the_view(log_dir: Path) -> None:
    names = [field["name"] for field in table_fields("recovery_plan")]
    asked = (log_dir, "--topic", "zero-hole")
    _, rows = plans(*asked)
    assert list(rows["zero-hole"]) == names
    _, out, err = run(*asked, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert list(row) == names
    assert json.loads(row["leader_epochs"]) == rows["zero-hole"]["leader_epochs"]
    assert "LOST: 10,521 bytes in 1 partition, of which 2,546 bytes with" in err


def test_text_shows_the_partitions_with_findings_and_a_verdict(log_dir: Path) -> None:
    whole = ("--topic", "as-killed")
    code, out, _ = run(log_dir, *whole, "--topic", "zero-hole")
    header, row, verdict = out.splitlines()
    assert (code, header.split()[:2], row.split()[0]) == (1, ["TOPIC", "PARTITION"], "zero-hole")
    assert verdict.startswith("a broker gets through with all of 2 partitions; LOST: 10,521 bytes")
    code, out, _ = run(log_dir, *whole)
    words = "nothing is lost but what retention deletes"
    assert (code, out) == (0, f"a broker gets through with all of 1 partition; {words}\n")
    _, out, _ = run(log_dir, *whole, "--all")
    assert out.splitlines()[1].split()[0] == "as-killed"


def test_the_stop_before_the_start_can_be_given(log_dir: Path) -> None:
    # F121: after a clean stop nothing is checked.
    asked = (log_dir, "--topic", "bitflip-payload-active")
    _, rows = plans(*asked, "--shutdown", "clean")
    assert rows["bitflip-payload-active"]["lost_bytes"] == 0
    _, rows = plans(*asked, "--shutdown", "unclean")
    assert rows["bitflip-payload-active"]["lost_bytes"] > 0


def test_sequences_of_producers_are_a_table_on_request() -> None:
    # F125 to F127: nothing is irregular in what a broker let in.
    code, out, _ = run(EXAMPLES / "kafka-4.4", "--sequences")
    assert (code, out) == (0, "no irregular sequence numbers\n")


def test_the_verdict_names_where_consumers_stop(log_dir: Path) -> None:
    # F128: the copy was read by a Java consumer, which ended with an error at this offset.
    code, out, _ = run(log_dir, "--topic", "bitflip-payload-first-segment")
    assert code == 1
    assert out.splitlines()[-1] == (
        "a broker gets through with all of 1 partition, but CONSUMERS STOP at "
        "bitflip-payload-first-segment-0@191; 1 fault would stay in what it serves: salvage "
        "leaves out damage, and cannot fill a hole in the offsets"
    )


@pytest.mark.parametrize(("shutdown", "padded"), [("clean", 1), ("unclean", 0)])
def test_a_padded_time_index_is_no_loss_at_the_start_but_soon_after(
    tmp_path: Path, shutdown: str, padded: int
) -> None:
    # F941, F121: brokers 4.1.0 and 4.4.0 deleted such segments at once. A recovery removes zeros.
    made = LogDirectory(tmp_path / "logs")
    made.topic("orders").records([("k", "v")])
    log_dir = Path(made.write())
    index = log_dir / "orders-0" / f"{0:020d}.timeindex"
    index.write_bytes(index.read_bytes() + bytes(120))
    (log_dir / "recovery-point-offset-checkpoint").unlink()
    code, rows = plans(log_dir, "--shutdown", shutdown)
    assert (code, rows["orders"]["padded_time_indexes"]) == (padded, padded)
    _, out, _ = run(log_dir, "--shutdown", shutdown)
    assert ("TAKEN FOR 1970: 1 segment" in out, "the logs lose nothing" in out) == (
        bool(padded),
        not padded,
    )


def test_nodes_that_were_not_given_are_named(unpacked: Unpack) -> None:
    # The cluster of set restore44 has brokers 1 to 3, by its metadata.
    nodes = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    _, out, _ = run(nodes[1])
    assert "not given: the log directories of 1, 3, which are brokers of the cluster" in out
    _, out, _ = run(*nodes)
    assert "not given" not in out
