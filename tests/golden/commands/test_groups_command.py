"""`kafkalog groups` against every line that kafka-consumer-groups printed of the live brokers."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.groups.group_notes import known_from_ms
from kafkalog.command_line.main import kafkalog
from kafkalog.report.contents import ReportMoment
from kafkalog.report.group_sections import group_section
from kafkalog.report.reading.report_reading import ReportRequest, read_report
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.testing import LogDirectory
from kafkalog.views.engine import LocalViews
from tests.support.golden.described_groups import (
    PrintedLag,
    PrintedMember,
    admin_groups,
    printed_lags,
    printed_members,
    printed_states,
)
from tests.support.golden.groups_command import Unpacked, log_dirs, rows, run
from tests.support.logs.commit_logs import SampleCommit, write_commits, write_topic
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.repository import ROOT

SETS = ("kafka44", "kafka39zk", "kafka010")
WITH_TOOLS = ("kafka44", "kafka39zk")
SHOP = str(ROOT / "examples" / "shop-week")
COMMITTED_MS = 1_767_225_600_000
# A group of the shop stopped here.
STOPPED = "2026-11-14T02:00:00.000Z"


@pytest.mark.parametrize("name", SETS)
def test_every_line_of_describe_is_that_of_the_tool(unpacked: Unpacked, name: str) -> None:
    # F310, F322
    found = {
        (row["group"], row["topic"], row["partition"]): PrintedLag(
            row["current_offset"],
            row["log_end_offset"],
            row["lag"],
            row["consumer_id"],
            row["host"],
            row["client_id"],
        )
        for row in rows(*log_dirs(unpacked(f"{name}.logs")))
    }
    # Where a commit waits for its transaction the tool has no line.
    golden = unpacked(f"{name}.golden")
    pending = [
        place
        for place, lag in found.items()
        if lag.current_offset is None and lag.member_id is None
    ]
    assert all("pending" in group for group, _, _ in pending)
    assert {place: lag for place, lag in found.items() if place not in pending} == (
        printed_lags(golden) | share_lags(golden, found)
    )


def share_lags(
    golden: Path, found: dict[tuple[str, str, int], PrintedLag]
) -> dict[tuple[str, str, int], PrintedLag]:
    """What kafka-share-groups printed, which has no log end. F780"""
    told = golden / "tools" / "share_groups_describe.txt"
    lines = told.read_text().splitlines() if told.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("GROUP ")]
    return {
        (group, topic, int(partition)): found[group, topic, int(partition)]._replace(
            current_offset=int(start), lag=int(lag)
        )
        for group, topic, partition, start, lag in rows
    }


def test_why_names_the_transaction_that_holds_a_commit(unpacked: Unpacked) -> None:
    # F781, against the Admin client's description of the transaction.
    (row,) = rows(*log_dirs(unpacked("kafka44.logs")), "--why", "shop.g-txn-pending")
    told = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["transactions"]
    described = told[row["transactional_id"]]["describe"]
    for name, value in (
        ("producerId", row["producer_id"]),
        ("transactionTimeoutMs", row["transaction_timeout_ms"]),
        ("transactionStartTimeMs", f"OptionalLong[{row['transaction_started_ms']}]"),
        ("topicPartitions", "[shop.tx.out-0, __consumer_offsets-6]"),
    ):
        assert f"{name}={value}" in described
    assert (row["topic"], row["partition"], row["reason"]) == ("shop.idem", 0, "pending_commit")
    assert row["ends_by_itself_ms"] == row["transaction_started_ms"] + row["transaction_timeout_ms"]


def test_why_names_the_transaction_at_whose_beginning_readers_wait(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F781: the Admin client's last stable offset is where the group has come to.
    golden, (logs,) = unpacked("kafka44.golden"), log_dirs(unpacked("kafka44.logs"))
    copy = tmp_path / "copy"
    # Without the checkpoints: they know the partitions that are left out. F940
    others = ("__consumer_offsets-*", "shop.[!t]*", "re*-offset-checkpoint")
    shutil.copytree(logs, copy, ignore=shutil.ignore_patterns(*others))
    offsets = json.loads((golden / "admin.json").read_text())["offsets"]
    stable, end = (
        offsets[name]["shop.tx-1"]["offset"] for name in ("latest_read_committed", "latest")
    )
    made = LogDirectory(
        tmp_path / "made", cluster_id=find_partitions([logs])[0].log_dir.cluster_id or ""
    )
    for group, offset in (("waits", stable), ("uncommitted", stable + 1), ("done", end)):
        made.commit_offsets(group, {("shop.tx", 1): offset})
    made.write()
    paths = (str(copy), str(tmp_path / "made"))
    found = {row["group"]: row for row in rows(*paths, *asked_why("waits", "uncommitted", "done"))}
    assert {group: row["reason"] for group, row in found.items()} == {
        "waits": "open_transaction",
        "uncommitted": "no_members",
        "done": "nothing_to_read",
    }
    assert found["waits"]["transactional_id"] == "shop.tid-hanging"
    result = CliRunner().invoke(kafkalog, ["txns", *paths, "--format", "json", "--processes", "1"])
    waiting = {row["transactional_id"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert waiting["shop.tid-hanging"]["waiting_groups"] == "waits"


def test_why_at_a_past_time_names_a_transaction_that_has_ended_since(tmp_path: Path) -> None:
    # F781
    made = LogDirectory(tmp_path / "logs")
    orders, shop = made.topic("orders"), made.transactional_producer("shop")
    made.commit_offsets("waits", {("orders", 0): 0})
    shop.records(orders, [("a", "1")])
    orders.records([("b", "2")])
    made.commit_offsets("waits", {("orders", 0): 0})
    before = made.write()
    (row,) = rows(before, *asked_why("waits"))
    assert row["reason"] == "open_transaction"
    at_ms = row["committed_at_ms"]
    shop.commit()
    late = made.transactional_producer("late")
    late.records(orders, [("c", "3")])
    log_dir = made.write()
    (then,) = rows(log_dir, *asked_why("waits"), "--as-of", str(at_ms))
    assert (then["reason"], then["producer_id"]) == ("open_transaction", row["producer_id"])


def asked_why(*groups: str) -> list[str]:
    return [word for group in groups for word in ("--why", group)]


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_states_are_those_that_the_tool_printed(unpacked: Unpacked, name: str) -> None:
    # F320, F321, F323
    told = printed_states(unpacked(f"{name}.golden"))
    found = {row["group"]: row for row in rows(*log_dirs(unpacked(f"{name}.logs")), "--state")}
    assert {
        group: (found[group]["assignment_strategy"], found[group]["state"], found[group]["members"])
        for group in told
    } == {group: (facts.assignor, facts.state, facts.members) for group, facts in told.items()}
    # Who led the offsets topic is in KRaft's metadata only.
    if name == "kafka44":
        assert {group: found[group]["coordinator_id"] for group in told} == {
            group: facts.coordinator for group, facts in told.items()
        }


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_members_are_those_that_the_tool_printed(unpacked: Unpacked, name: str) -> None:
    # F322
    found: dict[str, list[PrintedMember]] = {}
    for row in rows(*log_dirs(unpacked(f"{name}.logs")), "--members"):
        who = (row["consumer_id"], row["group_instance_id"], row["host"], row["client_id"])
        found.setdefault(row["group"], []).append(PrintedMember(*who, row["partitions"]))
    assert found == printed_members(unpacked(f"{name}.golden"))


def test_assignments_are_written_as_the_tool_writes_them(unpacked: Unpacked) -> None:
    lines = (unpacked("kafka44.golden") / "tools" / "groups_members.txt").read_text().splitlines()
    found = rows(*log_dirs(unpacked("kafka44.logs")), "--members", "--verbose")
    for row in found:
        (line,) = (
            line.split()
            for line in lines
            if line.startswith(f"{row['group']} {row['consumer_id']}")
        )
        assert row["assignment"] in line
    assert len(found) > 4


@pytest.mark.parametrize("name", SETS)
def test_the_groups_that_are_listed_are_those_that_the_broker_knew(
    unpacked: Unpacked, name: str
) -> None:
    # F320: deleted and expired ones are not among them.
    listed = rows(*log_dirs(unpacked(f"{name}.logs")), "--list")
    found = [row["group"] for row in listed if row["type"] != "share"]
    assert found == sorted(admin_groups(unpacked(f"{name}.golden")))
    # The lines of kafka-share-groups begin with the group.
    told = unpacked(f"{name}.golden") / "tools" / "share_groups_describe.txt"
    lines = told.read_text().splitlines() if told.exists() else []
    share = {line.split()[0] for line in lines if line and not line.startswith("GROUP ")}
    assert {row["group"] for row in listed if row["type"] == "share"} == share


def test_who_is_behind_since_when() -> None:
    # tests/docs/shop_week.py says what was committed when.
    (late,) = rows(SHOP, "--lagging")
    assert (late["group"], late["partitions_behind"], late["lost"]) == ("reports", 3, 0)
    described = rows(SHOP, "--group", "reports", "--verbose")
    waiting = rows(SHOP, "--lagging", "--verbose")
    assert [(row["partition"], row["behind_since_ms"]) for row in waiting] == sorted(
        ((row["partition"], row["behind_since_ms"]) for row in described), key=lambda each: each[1]
    )
    assert late["to_read"] == sum(row["readable_records"] for row in described)
    assert late["behind_since_ms"] == min(row["behind_since_ms"] for row in described)
    code, out, err = run(SHOP, "--lagging")
    assert code == 0
    header, line = out.splitlines()
    assert header.split()[:4] == ["GROUP", "TO-READ", "BEHIND-SINCE", "TIME-LAG"]
    assert STOPPED in line
    assert "a running broker would have dropped 3 commits" in err
    assert "in 3 of 3 lagging partitions" in err


def test_at_a_past_moment_the_group_had_what_it_had_committed() -> None:
    # F312, F324
    before = rows(SHOP, "--group", "reports", "--as-of", "2026-11-13T12:00:00Z")
    assert before == rows(SHOP, "--group", "reports", "--as-of", "2026-11-13T12:00:00")
    now = rows(SHOP, "--group", "reports")
    assert [row["partition"] for row in before] == [0, 1, 2]
    for one, other in zip(before, now, strict=True):
        assert one["current_offset"] < other["current_offset"]
        assert one["log_end_offset"] < other["log_end_offset"]


def test_logs_that_are_not_in_the_input_are_reported() -> None:
    # As where topics are on brokers that were not given.
    code, out, err = run(f"{SHOP}/__consumer_offsets-0", "--lagging")
    assert (code, out) == (0, "no group is known to lag\n")
    assert "lag unknown for " in err
    assert "give the log directories of all brokers" in err


def test_text_is_a_table_with_the_tools_header() -> None:
    code, out, _ = run(SHOP, "--describe", "--all-groups")
    assert code == 0
    assert out.splitlines()[0].split() == [
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
        *("CONSUMER-ID", "HOST", "CLIENT-ID"),
    ]


def test_csv_has_a_header_and_nothing_for_none() -> None:
    _, out, _ = run(SHOP, "--format", "csv", "--group", "reports")
    first = next(csv.DictReader(io.StringIO(out)))
    assert (first["group"], first["consumer_id"]) == ("reports", "")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ("--group", "absent"),
            "--group: 'absent' is not valid, expected groups of the log directories:",
        ),
        (("--group", "report"), "did you mean reports? There are "),
        (("--group", "reports", "--all-groups"), "--all-groups cannot be used with --group"),
        (("--as-of", "noon"), "'noon' is not a time"),
        (("--list", "--verbose"), "--verbose cannot be used with --list"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(asked: tuple[str, ...], said: str) -> None:
    code, out, err = run(SHOP, *asked)
    assert (code, out) == (2, "")
    assert said in err


def test_without_the_offsets_topic_it_says_what_is_missing() -> None:
    code, _, err = run(f"{SHOP}/orders-0")
    assert (code, "there is no partition of __consumer_offsets" in err) == (3, True)


def test_damage_that_hides_commits_is_reported_beside_the_table(tmp_path: Path) -> None:
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    (segment, *_) = sorted(copy.glob("__consumer_offsets-0/*.log"))
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    code, out, err = run(str(copy))
    assert (code, out.count("\n") > 3) == (0, True)
    assert "1 damaged places in __consumer_offsets hide some" in err


def test_what_damage_hides_is_not_a_record_to_read_and_is_reported(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F310: the tool's lag is the sum of its parts.
    (logs,) = log_dirs(unpacked("kafka44.logs"))
    copy = tmp_path / "copy"
    left_out = [path.name for path in Path(logs).glob("shop.*") if path.name != "shop.idem-0"]
    shutil.copytree(logs, copy, ignore=shutil.ignore_patterns(*left_out))
    segment = max(copy.glob("shop.idem-0/*.log"))
    segment.chmod(0o644)
    segment.write_bytes(segment.read_bytes()[:-100])
    _, out, err = run(str(copy), "--lagging", "--format", "json")
    found = {row["group"]: row for row in map(json.loads, out.splitlines())}
    told = {
        group: lag.lag
        for (group, topic, _), lag in printed_lags(unpacked("kafka44.golden")).items()
        if topic == "shop.idem" and lag.lag
    }
    assert {group: row["to_read"] + row["damaged"] for group, row in found.items()} == told
    assert all(row["damaged"] for row in found.values())
    assert f"damage hides 2 offsets of shop.idem-0 from {len(told)} groups" in err


def test_behind_since_is_of_the_first_record_by_offset_not_by_time() -> None:
    _, out, _ = run("--help-all")
    assert "since the time of the first record, by offset" in " ".join(out.split())


def test_nothing_is_known_before_the_first_record_that_the_consumer_got(unpacked: Unpacked) -> None:
    # F328
    golden, (logs,) = unpacked("kafka44.golden"), log_dirs(unpacked("kafka44.logs"))
    with open(golden / "consumer" / "__consumer_offsets.read_uncommitted.jsonl") as lines:
        first_ms = min(json.loads(line)["timestamp"] for line in lines)
    assert known_from_ms(find_partitions([logs])) == first_ms


@pytest.mark.parametrize(
    ("as_of", "said"),
    [
        ("1795246890", "seconds, of 2026-11-21T07:41:30.000Z, would be 1795246890000"),
        ("2026-11-13T12:00:00", "so none of 2026-11-13T12:00:00.000Z is missing"),
        ("2100-01-01", "2100-01-01T00:00:00.000Z is in the future"),
    ],
)
def test_how_far_a_moment_is_known_is_beside_the_table(as_of: str, said: str) -> None:
    # F328
    code, _, err = run(SHOP, "--lagging", "--as-of", as_of)
    assert (code, said in err) == (0, True)


def test_before_all_commits_there_was_no_group_or_nothing_is_known(tmp_path: Path) -> None:
    # F328: the log begins with offset 0 and was never cleaned; then its first segment is not there.
    copy = tmp_path / "logs"
    shutil.copytree(SHOP, copy)
    asked = (str(copy), "--as-of", "2020-01-01T00:00:00Z")
    _, _, err = run(*asked)
    assert err.splitlines() == [
        "commits: none has been removed by cleaning, so none of 2020-01-01T00:00:00.000Z is "
        "missing",
        "there was no group yet at 2020-01-01T00:00:00.000Z: the first record of "
        "__consumer_offsets is of 2026-11-09T00:00:00.000Z",
    ]
    min((copy / "__consumer_offsets-0").glob("*.log")).unlink()
    reach, none = run(*asked)[2].splitlines()
    assert reach.endswith(
        "of 2020-01-01T00:00:00.000Z older ones that were replaced since can be missing"
    )
    assert none.startswith("nothing is known of 2020-01-01T00:00:00.000Z: the first record of ")


def test_a_record_from_the_future_has_no_age(unpacked: Unpacked) -> None:
    # F315: kafka44 has records that their producer dated to 2100.
    code, out, err = run(*log_dirs(unpacked("kafka44.logs")), "--lagging", "--verbose")
    (line,) = (line for line in out.splitlines() if "2100-01-01T00:00:00.000Z" in line)
    assert (code, " d " in line, "in the future" in line) == (0, True, True)
    assert "the next records of shop.idem-0 have timestamps in the future" in err


def test_a_commit_of_a_topic_that_was_deleted_since_is_named(unpacked: Unpacked) -> None:
    (logs,) = log_dirs(unpacked("kafka44.logs"))
    _, _, err = run(logs, "--as-of", "2026-11-21T07:41:20Z", "--group", "shop.g-topic-deleted")
    assert (
        "lag unknown for shop.g-topic-deleted in shop.to-be-deleted-0: the topic has been deleted "
        "since"
    ) in err


def test_where_groups_are_that_commit_to_zookeeper_is_reported(unpacked: Unpacked) -> None:
    where = "groups that commit to ZooKeeper are in its files: kafkalog groups --zookeeper"
    log_dirs = str(unpacked("kafka08.logs") / "log-dirs")
    found = CliRunner().invoke(kafkalog, ["groups", log_dirs])
    assert (found.exit_code, where in found.stderr) == (0, True)
    # This one has committed to ZooKeeper only.
    missing = CliRunner().invoke(kafkalog, ["groups", log_dirs, "--group", "o8.g-old-zk"])
    assert (missing.exit_code, where in missing.stderr) == (2, True)
    newer = CliRunner().invoke(kafkalog, ["groups", SHOP])
    assert (newer.exit_code, where in newer.stderr) == (0, False)


@pytest.fixture
def resumed(tmp_path: Path) -> str:
    """16 records, epoch 0 up to offset 12, and commits beyond that of epochs 0 and 2."""
    add_meta_properties(tmp_path)
    write_topic(tmp_path, "orders", [COMMITTED_MS] * 16)
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n2 12\n")
    commits = [SampleCommit(f"g{epoch}", "orders", COMMITTED_MS, 14, epoch) for epoch in (0, 2)]
    write_commits(tmp_path, commits)
    return str(tmp_path)


def test_where_a_consumer_does_not_continue_at_its_commit_is_shown(resumed: str) -> None:
    # F943: a broker 4.4.0 with such a commit; Java's consumer went back to 12, librdkafka's not.
    code, out, err = run(resumed)
    assert (code, out.splitlines()[0].split()[6:8]) == (0, ["RESUMES-AT", "RECORDS-AGAIN"])
    found = [(row["group"], row["resumes_at"], row["records_again"]) for row in rows(resumed)]
    assert found == [("g0", 12, 2), ("g2", None, None)]
    assert "g0 continues orders-0 at 12, not at 14: 2 records come again" in err
    assert "librdkafka's that are given their partitions by assign continue at the commit" in err
    _, out, err = run(resumed, "--group", "g2")
    assert ("RESUMES-AT" in out, "continues" in err) == (False, False)
    # It is a column of the table, whatever the rows have.
    _, out, _ = run(resumed, "--group", "g2", "--columns", "group,resumes_at")
    assert [line.split() for line in out.splitlines()] == [["GROUP", "RESUMES-AT"], ["g2", "-"]]
    # The epochs of a past time are not known.
    assert rows(resumed, "--group", "g0", "--as-of", "2026-01-02")[0]["resumes_at"] is None


def test_the_report_has_the_same_columns(resumed: str) -> None:
    # F943
    logs = find_partitions([resumed])
    views = LocalViews([resumed], logs, 1)
    request = ReportRequest([resumed], logs, ReportMoment.of(None))
    section = read_report(views, request).groups
    assert section is not None
    found = {row.group_id: (row.resumes_at, row.records_again) for row in section.partitions}
    assert found == {"g0": (12, 2), "g2": (None, None)}
    html = str(group_section(section).markup)
    assert ("Resumes at" in html, "1 commit is beyond the end of the leader epoch" in html) == (
        True,
        True,
    )


def test_the_command_that_why_names_can_be_typed(unpacked: Unpacked) -> None:
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    _, out, _ = run(*map(str, disks), "--why", "g-cpp")
    typed = [shlex.split(line) for line in out.splitlines() if line.startswith("    kafkalog ")]
    assert len(typed) == 2
    for words in typed:
        # The record after the commit is at the offset that is named.
        result = CliRunner().invoke(kafkalog, words[1:])
        offset = words[words.index("--offsets") + 1].partition(":")[0]
        assert (result.exit_code, f"offset: {offset} " in result.stdout) == (0, True)


def test_members_show_their_assignment(unpacked: Unpacked) -> None:
    _, out, _ = run(*log_dirs(unpacked("kafka44.logs")), "--members")
    assert out.splitlines()[0].split()[-2:] == ["PARTITIONS", "ASSIGNMENT"]
