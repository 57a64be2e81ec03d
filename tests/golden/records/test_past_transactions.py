"""The transactions of a past time, against what the clients that ran them wrote down: set restore44
of tests/golden/README.md. Rule: F1322."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import Unpack

# Writes of markers follow the answer to the client, so that one that has it is open for a while.
_LAST_MARKER_S = 0.2
_NEVER = float("inf")
_TOPICS = ("transfers", "derived")


def ledger(unpacked: Unpack, name: str) -> list[dict[str, Any]]:
    path = unpacked("restore44.golden") / "ledgers" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def disks(unpacked: Unpack) -> list[str]:
    return sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))


def run(paths: list[str], *arguments: str) -> tuple[list[dict[str, Any]], str]:
    given = ["txns", *paths, *arguments, "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def entries(checkpoint: str) -> list[list[str]]:
    return [line.split() for line in checkpoint.splitlines()[2:]]


def place(row: dict[str, Any], transactional_id: str) -> tuple[str, int, str]:
    return row["topic"], row["partition"], transactional_id


@pytest.mark.parametrize(
    "at_ms", [1_795_636_096_100, 1_795_636_106_378, 1_795_636_112_000, 1_795_636_121_000]
)
def test_open_are_those_that_clients_had_begun_and_not_ended(unpacked: Unpack, at_ms: int) -> None:
    # F1322
    ends = {each["tx"]: each for each in ledger(unpacked, "txns")}
    records = [each for name in _TOPICS for each in ledger(unpacked, name) if each["tx"]]
    at = at_ms / 1000
    surely_open, maybe_open, surely_begun, maybe_begun = (set() for _ in range(4))
    for each in records:
        end, name = ends[each["tx"]], each["tx"]
        key = (*place(each, name.split(":")[0]), name)
        is_acknowledged = each["ack"] is not None and each["ack"] < at
        if is_acknowledged:
            surely_begun.add(key)
        if each["call"] < at:
            maybe_begun.add(key)
        if is_acknowledged and at < (end["end_call"] or _NEVER):
            surely_open.add(key)
        if each["call"] < at < (end["end_return"] or _NEVER) + _LAST_MARKER_S:
            maybe_open.add(key)
    found, said = run(disks(unpacked), "--all", "--as-of", str(at_ms))
    rows = [row for row in found if row["topic"] in _TOPICS]
    is_open = {place(row, row["transactional_id"]) for row in rows if row["outcome"] == "open"}
    assert {key[:3] for key in surely_open} <= is_open <= {key[:3] for key in maybe_open}
    counts = Counter(place(row, row["transactional_id"]) for row in rows)
    least, most = (Counter(key[:3] for key in keys) for keys in (surely_begun, maybe_begun))
    assert counts
    for of in counts.keys() | least.keys():
        assert least[of] <= counts[of] <= most[of], of
    assert "brokers' clocks say which transactions had ended" in said


def test_stable_offsets_are_held_by_what_was_open_then(unpacked: Unpack) -> None:
    # F1322: at this time tx-a had records in transfers-0 and transfers-1, and ended later.
    at = ("--as-of", "1795636106378")
    paths = disks(unpacked)
    report, _ = run(paths, "--open", *at)
    held = {
        (row["topic"], row["partition"]): row["first_offset"]
        for row in report
        if row["is_stable_offset_holder"]
    }
    stable, _ = run(paths, "--stable-offsets", *at)
    assert {("transfers", 0), ("transfers", 1)} <= held.keys()
    assert held == {
        (row["topic"], row["partition"]): row["last_stable_offset"]
        for row in stable
        if row["open_transactions"]
    }
    now, _ = run(paths, "--stable-offsets")
    assert not any(row["open_transactions"] for row in now if row["topic"] == "transfers")


def test_what_has_nothing_left_from_then_is_named_and_not_called_empty(unpacked: Unpack) -> None:
    # F1322: before the first record in a log that now begins later.
    paths = disks(unpacked)
    begun = {
        f"{row['topic']}-{row['partition']}": row["end_offset"]
        for row in run(paths, "--stable-offsets", "--as-of", "1795636050000")[0]
    }
    unknown = {each for each, end in begun.items() if end is None}
    copies: dict[str, list[bool]] = {
        place.name: [] for path in paths for place in Path(path).glob("*-*") if place.is_dir()
    }
    for path in paths:
        text = (Path(path) / "log-start-offset-checkpoint").read_text()
        checkpoints = {f"{topic}-{number}": int(start) for topic, number, start in entries(text)}
        for each in Path(path).glob("*-*/"):
            first = next((log for log in sorted(each.glob("*.log")) if log.stat().st_size), None)
            # A batch begins with its base offset.
            base = int.from_bytes(first.read_bytes()[:8], "big") if first else 0
            copies[each.name].append(max(base, checkpoints.get(each.name, 0)) > 0)
    assert unknown
    assert all(any(copies[name]) for name in unknown)
    assert not any(all(copies[name]) for name in begun.keys() - unknown)
