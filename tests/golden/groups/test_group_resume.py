"""`kafkalog groups --resume`: where consumers continue. What a broker's consumers did is in
tests/broker/offsets/test_resume_on_broker.py. F943, F1235 to F1237."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.golden.resumed_groups import resumes, run_resume
from tests.support.golden.startup_cases import startup_cases
from tests.support.repository import Unpack

LOG_START, LOG_END = 290, 720


@pytest.fixture(scope="module")
def log_dir(unpacked: Unpack) -> Path:
    return unpacked("positions44.logs") / "log-dirs"


def test_consumers_read_on_at_a_commit_that_the_log_has(log_dir: Path) -> None:
    for group, offset in {"lost": 365, "reset": 550, "steady": 600, "two": 360}.items():
        row = resumes(log_dir)[group]
        assert (row["resumes_at"], row["reason"]) == (offset, "at_commit")
        assert (row["records_again"], row["records_skipped"]) == (0, 0)
        assert row["to_read"] == LOG_END - offset
        assert (row["leader"], row["leads_now"]) == (1, True)


@pytest.mark.parametrize(
    ("reset", "behind", "ahead"),
    [
        ("earliest", (LOG_START, 240), (LOG_START, 0)),
        ("latest", (LOG_END, 670), (LOG_END, 0)),
        ("none", (None, None), (None, None)),
        # All records are of the days after 2000.
        ("by_duration:P20000D", (LOG_START, 240), (LOG_START, 0)),
        ("by_duration:1s", (LOG_END, 670), (LOG_END, 0)),
    ],
)
def test_a_commit_outside_the_log_is_reset(
    log_dir: Path,
    reset: str,
    behind: tuple[int | None, int | None],
    ahead: tuple[int | None, int | None],
) -> None:
    # F1236: group behind has committed 50, which retention deleted; ahead 5000.
    found = resumes(log_dir, "--auto-offset-reset", reset)
    row = found["behind"]
    assert row["reason"] == "below_log_start"
    assert (row["resumes_at"], row["records_skipped"]) == behind
    row = found["ahead"]
    assert row["reason"] == "beyond_log_end"
    assert (row["resumes_at"], row["records_skipped"]) == ahead


def test_a_leader_epoch_that_ended_before_the_commit(log_dir: Path, tmp_path: Path) -> None:
    # F943: as after a truncation; librdkafka commits the epoch of the records, which is 0.
    copied = Path(shutil.copytree(log_dir, tmp_path / "log-dirs"))
    epochs = copied / "orders-0" / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n2\n0 {LOG_START}\n1 500\n")
    found = resumes(copied)
    row = found["steady"]
    assert (row["resumes_at"], row["reason"], row["records_again"]) == (500, "epoch_ended", 100)
    # Its commit is before the end of the epoch.
    assert found["lost"]["reason"] == "at_commit"


def test_where_java_s_consumer_went_back_to(unpacked: Unpack, tmp_path: Path) -> None:
    # F943: Java's consumer of group g went back to 12, where epoch 0 ended, and got two again.
    case = startup_cases(unpacked)["07-resume-epoch"]
    directories = {path.parent for path in case.made_in(tmp_path).rglob("meta.properties")}
    row = resumes(*sorted(directories))["g"]
    assert (row["current_offset"], row["resumes_at"]) == (14, 12)
    assert (row["reason"], row["records_again"]) == ("epoch_ended", 2)


def test_a_commit_that_expires_is_reset(log_dir: Path) -> None:
    # F327: the brokers have been off for longer than offsets.retention.minutes.
    found = resumes(log_dir, "--offsets-retention", "1", "--auto-offset-reset", "earliest")
    row = found["steady"]
    assert (row["resumes_at"], row["reason"]) == (LOG_START, "dropped")
    assert (row["records_again"], row["records_skipped"]) == (600 - LOG_START, 0)
    assert "offsets.retention.minutes" in row["what_happens"]
    # At the end, all are skipped that were left to read.
    skipped = resumes(log_dir, "--offsets-retention", "1")
    for group, offset in {"lost": 365, "reset": 550, "steady": 600, "two": 360}.items():
        assert skipped[group]["reason"] == "dropped"
        assert skipped[group]["records_skipped"] == LOG_END - offset


def test_commits_of_a_group_with_one_reason_are_one_sentence(unpacked: Unpack) -> None:
    """F325: without members a commit expires; group g-early reads five partitions."""
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    given = (*disks, "--offsets-retention", "1", "--group", "g-early")
    _, as_json, _ = run_resume(*given, "--format", "json")
    rows = [json.loads(line) for line in as_json.splitlines()]
    led = [row for row in rows if row["leads_now"]]
    assert {row["reason"] for row in led} == {"dropped"}
    # At the end of the log, which the consumers then begin at, all that was left is skipped.
    skipped = sum(row["log_end_offset"] - row["current_offset"] for row in led)
    _, out, _ = run_resume(*given)
    (line,) = (line for line in out.splitlines() if "offsets.retention.minutes" in line)
    assert line == (
        "g-early in 5 partitions (events-0, events-1, events-2 and 2 more): the commit expires: "
        "brokers drop it by offsets.retention.minutes; auto.offset.reset=latest decides; "
        f"{skipped:,} records are skipped"
    )


def test_another_leader_can_have_less(unpacked: Unpack) -> None:
    # The disks of three nodes at three different seconds.
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    code, out, _ = run_resume(*disks, "--format", "json", "--group", "g-consumer")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["leads_now"] for row in rows if row["partition"] == 0] == [True, False, False]
    for row in rows:
        is_there = row["current_offset"] <= row["log_end_offset"]
        assert row["reason"] == ("at_commit" if is_there else "beyond_log_end")
    # The leaders of these partitions are nodes that were copied before node 3.
    _, out, _ = run_resume(*disks, "--group", "g-consumer")
    (line,) = (line for line in out.splitlines() if "another replica here is long" in line)
    leads = [row for row in rows if row["leads_now"] and row["reason"] == "beyond_log_end"]
    names = ", ".join(f"events-{row['partition']}" for row in leads)
    assert f"leader's log of {names}: if the leader was copied earlier" in line
    _, out, _ = run_resume(*disks, "--group", "g-early")
    assert "another replica here is long" not in out
    # Four partitions of events and one of plain.
    assert "for 5 commits it makes no difference which replica here leads" in out


def test_text_has_the_leaders_and_a_sentence_for_each_other(unpacked: Unpack) -> None:
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    _, out, _ = run_resume(*disks, "--group", "g-cpp", "--auto-offset-reset", "earliest")
    lines = out.splitlines()
    # Topic events has four partitions.
    assert [line.split()[2] for line in lines if line.startswith("g-cpp  ")] == ["0", "1", "2", "3"]
    _, as_json, _ = run_resume(
        *(*disks, "--group", "g-cpp", "--auto-offset-reset", "earliest", "--format", "json")
    )
    rows = [json.loads(line) for line in as_json.splitlines()]
    of_other = [row for row in rows if row["leader"] == 1 and not row["leads_now"]]
    again = sum(row["log_end_offset"] for row in of_other)
    assert (
        f"if broker 1 becomes the leader of {len(of_other)} partitions, {len(of_other)} commits of "
        f"g-cpp change: consumers continue elsewhere than at their commits, {again:,} records come "
        "again; --format json shows these rows"
    ) in lines


def test_partitions_are_counted_once_however_many_groups_read_them(unpacked: Unpack) -> None:
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    _, as_json, _ = run_resume(*disks, "--format", "json")
    rows = [json.loads(line) for line in as_json.splitlines()]
    led = {(row["group"], row["topic"], row["partition"]): row for row in reversed(rows)}
    changed = [
        row
        for row in rows
        if row["leader"] == 1
        and row["reason"] != "at_commit"
        and (lead := led[row["group"], row["topic"], row["partition"]])["leader"] != 1
        and (lead["reason"], lead["resumes_at"]) != (row["reason"], row["resumes_at"])
    ]
    # Topic events, which several groups read, has four partitions.
    partitions = {(row["topic"], row["partition"]) for row in changed}
    assert len(partitions) < len(changed)
    _, out, _ = run_resume(*disks)
    assert (
        f"if broker 1 becomes the leader of {len(partitions)} partitions, {len(changed)} commits of"
        in out
    )


def test_share_groups_have_rules_of_their_own(unpacked: Unpack) -> None:
    """F1361: the leader waits at a begin beyond its log's end, whatever consumers' reset is."""
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    given = ("--group", "g-share", "--auto-offset-reset", "earliest", "--format", "json")
    code, out, _ = run_resume(*disks, *given)
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["reason"] for row in rows} == {"at_commit", "beyond_log_end"}
    for row in rows:
        assert row["resumes_at"] == row["current_offset"]
        assert "auto.offset.reset=" not in row["what_happens"]
    # F780: what it acknowledged after its begin is not left to read, as in --lagging.
    result = CliRunner().invoke(
        kafkalog, ["groups", *map(str, disks), "--group", "g-share", "--format", "json"]
    )
    lags = [json.loads(line) for line in result.stdout.splitlines()]
    longest = max(row["log_end_offset"] for row in rows if row["partition"] == 0)
    (row,) = (row for row in rows if row["partition"] == 0 and row["log_end_offset"] == longest)
    assert row["to_read"] < longest - row["current_offset"]
    assert {lag["lag"] for lag in lags if lag["partition"] == 0} == {row["to_read"]}


def test_options_that_contradict(log_dir: Path) -> None:
    for more in (["--as-of", "2026-11-26"], ["--verbose"]):
        assert run_resume(log_dir, *more)[0] == 2
    given = ["groups", str(log_dir), "--auto-offset-reset", "none"]
    result = CliRunner().invoke(kafkalog, given)
    assert (result.exit_code, "--resume" in result.stderr) == (2, True)
    code, _, err = run_resume(log_dir, "--auto-offset-reset", "smallest")
    assert code == 2
    assert "earliest, latest, none, or by_duration:" in err
