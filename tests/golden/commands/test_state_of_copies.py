"""`kafkalog state` of several brokers' copies of a compacted log, which the cleaner of each has
cleaned at other times. F1391."""

import re
from pathlib import Path

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import Unpack

# Before node 1 was copied, and after the cleaner of node 3 had removed older values.
MOMENT = "2026-11-25T19:48:50Z"


def state(*log_dirs: Path) -> str:
    given = ["state", *map(str, log_dirs), "--topic", "state", "--as-of", MOMENT, "--show", "0"]
    return CliRunner().invoke(kafkalog, given).stdout


def test_a_copy_that_was_cleaned_less_is_named_and_has_the_state(unpacked: Unpack) -> None:
    nodes = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    of_all = state(*nodes)
    assert "the state is not exact: values may be missing in 2 of 2 partitions" in of_all
    named = re.findall(r"the copy in (\S+) was cleaned less, and is exact from offset \d+", of_all)
    assert named == [f"{nodes[0]}/state-{number}" for number in (0, 1)]
    alone = state(nodes[0])
    assert "NOT EXACT" not in alone
    # The newest values of almost all keys are later in the copy that was cleaned.
    of_both = [int(*re.findall(r"(\d+) keys? in the table", said)) for said in (of_all, alone)]
    assert of_both[0] < of_both[1]


def test_txns_names_the_copies_that_know_more_of_a_past_time(unpacked: Unpack) -> None:
    nodes = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    given = ["txns", *map(str, nodes), "--as-of", MOMENT, "--topic", "state"]
    said = CliRunner().invoke(kafkalog, given).stderr
    (names,) = re.findall(rf"the copies in {nodes[0]} have more from then of (.*): give", said)
    assert {"__transaction_state-0", "__transaction_state-1"} <= {*names.split(", ")}
    # One replica alone has no other copies.
    alone = CliRunner().invoke(kafkalog, ["txns", str(nodes[0]), *given[4:]]).stderr
    assert "have more from then" not in alone
