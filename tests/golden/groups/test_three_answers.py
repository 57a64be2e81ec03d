"""Why a group does not read on, by `groups --why`, by `status` and by Burrow's rules side by side,
as the table in docs/lag.md has them. Rules: F330 to F338, F781, F1277.

What each of the three is right about is tested elsewhere, against Kafka's tools and Burrow's own
cases: here it is that the table tells what the three say of one log.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.groups.burrow import BurrowStatus
from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.format.batch_header import CREATE_TIME
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.logs.commit_logs import SampleCommit, write_commits, write_topic
from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import write_log

DELETED, END = 300, 900
ROW = re.compile(
    r"^\| (?P<case>[^|`]+) \| (?P<why>[^|]+) \| (?P<status>[^|]+) \| (?P<burrow>[^|]+) \|$",
    re.MULTILINE,
)
CODE = re.compile(r"`(\w+)`")


def commits(
    begin_ms: int, group: str, topic: str, *offsets: int, every_s: int = 60
) -> Iterator[SampleCommit]:
    """Commits, one a minute, from the begin of the log on."""
    for minute, offset in enumerate(offsets):
        yield SampleCommit(group, topic, begin_ms + 1000 * every_s * (minute + 1), offset)


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("answers")
    begin_ms = time.time_ns() // 1_000_000 - 3_600_000
    # A record each second for a quarter of an hour, until three quarters of an hour ago.
    times_ms = [begin_ms + 1000 * each for each in range(END)]
    write_topic(place, "t", times_ms)
    kept = [
        Record(offset, times_ms[offset], CREATE_TIME, None, b"value")
        for offset in range(DELETED, END)
    ]
    write_log(place, "late-0", {DELETED: [write_batch([each]) for each in kept]})
    write_commits(
        place,
        [
            *commits(begin_ms, "read", "t", 60, 120, END, every_s=300),
            *commits(begin_ms, "stopped", "t", 60, 120, 180),
            *commits(begin_ms, "same", "t", *[60] * 59),
            *commits(begin_ms, "back", "t", *range(60, 580, 10), *range(120, 155, 5)),
            *commits(begin_ms, "ahead", "t", 60, END + 5),
            *commits(begin_ms, "late", "late", 60, 120, 180),
            *commits(begin_ms, "elsewhere", "elsewhere", 60, 120, 180),
        ],
    )
    return place


@pytest.fixture(scope="module")
def answers(log_dir: Path) -> dict[str, dict[str, Any]]:
    """The three answers by group."""
    found: dict[str, dict[str, Any]] = {}
    groups = ("read", "stopped", "same", "back", "ahead", "late", "elsewhere")
    why = [word for group in groups for word in ("--why", group)]
    for row in _rows("groups", str(log_dir), *why):
        found[row["group"]] = {"why": row["reason"]}
    for row in _rows("lag-history", str(log_dir), "--by", "event", "--no-fail-on-findings"):
        if row["event"] == "end":
            found[row["group_id"]] |= {"status": row["status"], "burrow": row["burrow_status"]}
    return found


def _rows(*arguments: str) -> list[dict[str, Any]]:
    given = [*arguments, "--processes", "1", "--format", "json"]
    return [json.loads(line) for line in CliRunner().invoke(kafkalog, given).stdout.splitlines()]


def table() -> dict[str, dict[str, set[str]]]:
    text = (ROOT / "docs" / "lag.md").read_text()
    section = text.split("## Why a group does not read on")[1].split("\n## ")[0]
    rows = (match.groupdict() for match in [*ROW.finditer(section)][1:])
    return {
        row["case"]: {name: {*CODE.findall(row[name])} for name in ("why", "status", "burrow")}
        for row in rows
    }


@pytest.mark.parametrize(
    ("group", "case"),
    [
        ("read", "it has read everything"),
        ("stopped", "records are left, and nothing is committed any more"),
        ("same", "it commits, always the same offset"),
        ("back", "it went back, and has not caught up"),
        ("ahead", "the log ends before its commit"),
        ("late", "records after its commit were deleted"),
        ("elsewhere", "the log is not in the input"),
    ],
)
def test_the_table_has_what_the_three_say(
    answers: dict[str, dict[str, Any]], group: str, case: str
) -> None:
    for name, expected in table()[case].items():
        allowed: set[str | None] = {*expected} or {None}
        assert answers[group][name] in allowed, (group, name, answers[group])


def test_no_status_and_no_reason_is_left_out() -> None:
    rows = table().values()
    of_groups = {LagStatus.ERR.value}
    statuses = {each for row in rows for each in row["status"]}
    assert statuses == {each.value for each in LagStatus} - of_groups
    of_groups = {BurrowStatus.ERR.value, BurrowStatus.NOTFOUND.value}
    assert {each for row in rows for each in row["burrow"]} == {
        each.value for each in BurrowStatus
    } - of_groups
    questions = (ROOT / "docs" / "questions.md").read_text().split("| reason |")[1]
    listed = questions.split("\n\n")[0].splitlines()[2:]
    reasons = {each for line in listed for each in CODE.findall(line.split("|")[1])}
    assert reasons <= {each for row in rows for each in row["why"]}
