"""Groups, members and assignments of real brokers, against what kafka-consumer-groups printed and
the Admin client answered while these brokers ran.

The brokers were stopped afterwards with their consumers still joined: a stop changes no group.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.consumer_lag import main
from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.groups.group_records import Group, assigned_partitions
from kafkalog.coordination.groups.lag_question import ChosenNames, LagQuestion
from kafkalog.inspection.metadata.cluster_history import cluster_histories
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_rows import CommitsRead
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.views.engine import LocalViews, rows_of_view
from tests.support.golden.described_groups import (
    PrintedLag,
    admin_groups,
    printed_lags,
    printed_members,
    printed_states,
)

pytestmark = pytest.mark.spark

SETS = ("kafka44", "kafka39zk", "kafka010")
WITH_TOOLS = ("kafka44", "kafka39zk")
Unpacked = Callable[[str], Path]
Described = Callable[[str], dict[str, Group]]
NOW_MS = 2_000_000_000_000


# What `kafkalog groups --verbose` finds out without Spark.
JUDGED = (
    *("commit_status", "readable_records", "control_records", "gaps", "below_log_start"),
    *("ahead_of_log", "damaged", "next_timestamp_ms", "commit_timestamp_ms"),
)
PRINTED = {"next_timestamp_ms": "behind_since_ms", "commit_timestamp_ms": "committed_at_ms"}


def judged_by_command(*paths: str) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """The same by the command, of all groups that have committed or have members, and share
    groups."""

    def rows(option: str) -> Iterator[dict[str, Any]]:
        arguments = ["groups", *paths, option, "--format", "json", "--processes", "1"]
        return map(json.loads, CliRunner().invoke(kafkalog, arguments).stdout.splitlines())

    return {
        (row["group"], row["topic"], row["partition"]): tuple(
            row[PRINTED.get(column, column)] for column in JUDGED
        )
        for row in rows("--verbose")
    }


def log_dirs(logs: Path) -> list[Path]:
    return sorted(path.parent for path in logs.rglob("meta.properties"))


def views_of(*paths: Path) -> LocalViews:
    given = [str(path) for path in paths]
    return LocalViews(given, find_logs(given, strict=False), 1)


@cache
def lag_of(logs: Path) -> tuple[ConsumerLag, CommitsRead]:
    """The question about the groups of a set, and what reading their records shows."""
    settings = LagQuestion(NOW_MS)
    views = views_of(*log_dirs(logs))
    lag = ConsumerLag(views, settings, with_groups=True, with_members=True)
    return lag, lag.rows.groups_alone()


@pytest.fixture(scope="module")
def described_groups(unpacked: Unpacked) -> Described:
    """The groups of a set by their ids."""

    def describe(name: str) -> dict[str, Group]:
        _, read = lag_of(unpacked(f"{name}.logs"))
        by_id = {group.key.group_id: group for group in read.groups}
        assert len(by_id) == len(read.groups)
        return by_id

    return describe


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_states_are_those_that_kafka_consumer_groups_printed(
    described_groups: Described, unpacked: Unpacked, name: str
) -> None:
    # F320, F321
    told = printed_states(unpacked(f"{name}.golden"))
    found = described_groups(name)
    assert {
        group: (found[group].assignor, found[group].state, found[group].members) for group in told
    } == {group: (facts.assignor, facts.state, facts.members) for group, facts in told.items()}
    assert len(told) > 9


@pytest.mark.parametrize("name", SETS)
def test_groups_that_are_not_dead_are_those_that_the_broker_knew(
    described_groups: Described, unpacked: Unpacked, name: str
) -> None:
    # F320, F321: deleted and expired ones are not among them.
    told = admin_groups(unpacked(f"{name}.golden"))
    found = described_groups(name)
    known = {group: facts for group, facts in found.items() if facts.state != "Dead"}
    # Share groups are not listed by this call.
    assert {group for group, facts in known.items() if facts.group_type != "share"} == set(told)
    for group, facts in told.items():
        text = facts["describe"]["text"].lower()
        assert f"type={found[group].group_type}" in text
        assert found[group].state == facts["describe"]["state"]
        is_simple = "issimpleconsumergroup=true" in text
        assert (found[group].is_simple, group) == (is_simple, group)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_members_are_those_that_kafka_consumer_groups_printed(
    unpacked: Unpacked, name: str
) -> None:
    # F322
    found: dict[str, list[tuple[Any, ...]]] = {}
    for each in lag_of(unpacked(f"{name}.logs"))[1].members:
        partitions = sum(len(topic["partitions"]) for topic in each.assigned or ())
        who = (each.member_id, each.instance_id, each.client_host, each.client_id, partitions)
        found.setdefault(each.group.group_id, []).append(who)
    told = printed_members(unpacked(f"{name}.golden"))
    assert {group: sorted(members) for group, members in found.items()} == told
    assert len(told) >= 2


@pytest.mark.parametrize("name", SETS)
def test_each_partition_has_the_member_that_kafka_consumer_groups_printed(
    unpacked: Unpacked, name: str
) -> None:
    # F322: topic ids in assignments are resolved by partition.metadata.
    lag, read = lag_of(unpacked(f"{name}.logs"))
    found = {
        (key.group_id, *partition): (member.member_id, member.client_host, member.client_id)
        for key, own in assigned_partitions(read.members, lag.facts.topic_names()).items()
        for partition, number in own.items()
        if (member := read.members[number])
    }
    told = {
        key: (lag.member_id, lag.host, lag.client_id)
        for key, lag in printed_lags(unpacked(f"{name}.golden")).items()
        if lag.member_id is not None
    }
    assert found == told
    assert len(told) > 3


def test_the_epochs_of_consumer_groups_are_those_printed(
    described_groups: Described, unpacked: Unpacked
) -> None:
    # F321, F322: CURRENT-EPOCH and TARGET-EPOCH of each member.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    lines = (golden / "tools" / "groups_members.txt").read_text().splitlines()
    printed = re.compile(r" (?P<member>\S{22}) .* (?P<epoch>\d+) +\S+:\S+ +(?P<target>\d+) +\S+ *")
    told = {
        match["member"]: (int(match["epoch"]), int(match["target"]))
        for match in map(printed.search, lines)
        if match is not None
    }
    targets = {group: facts.target_epoch for group, facts in described_groups("kafka44").items()}
    found = {
        each.member_id: (each.member_epoch, targets[each.group.group_id])
        for each in lag_of(logs)[1].members
        if each.group_type == "consumer"
    }
    assert found == told
    assert len(told) == 3


@pytest.mark.deep
@pytest.mark.parametrize("name", SETS)
def test_every_line_is_the_row_of_job_consumer_lag(
    spark: SparkSession, unpacked: Unpacked, tmp_path: Path, name: str
) -> None:
    # F310, F322: CURRENT-OFFSET, LOG-END-OFFSET, LAG, CONSUMER-ID, HOST and CLIENT-ID.
    paths = [str(path) for path in log_dirs(unpacked(f"{name}.logs"))]
    assert main([*paths, "--output-dir", str(tmp_path), "--format", "parquet"]) == 0
    table = spark.read.parquet(str(tmp_path / "consumer_lag"))
    # By its input a row is replaced in the next run, also that of a member without a commit.
    assert {row.input_path for row in table.select("input_path").collect()} <= set(paths)
    is_known = "committed_offset IS NOT NULL OR member_id IS NOT NULL"
    # Another tool prints share groups: their rows are compared with the command's, below.
    rows = table.where(f"({is_known}) AND group_type <> 'share'").collect()
    found = {
        (row.group_id, row.topic, row.partition): PrintedLag(
            row.committed_offset,
            row.high_watermark,
            row.lag,
            row.member_id,
            row.client_host,
            row.client_id,
        )
        for row in rows
    }
    assert found == printed_lags(unpacked(f"{name}.golden"))
    assert judged_by_command(*paths) == {
        (row.group_id, row.topic, row.partition): tuple(row[column] for column in JUDGED)
        for row in table.collect()
    }
    states = printed_states(unpacked(f"{name}.golden")) if name in WITH_TOOLS else {}
    described = {row.group_id: row for row in rows if row.group_id in states}
    assert {
        group: (row.assignor, row.group_state, row.member_count) for group, row in described.items()
    } == {
        group: (told.assignor, told.state, told.members)
        for group, told in states.items()
        if group in described
    }
    # Who led the offsets topic is in KRaft's metadata only.
    coordinators = {group: row.coordinator_broker_id for group, row in described.items()}
    assert name != "kafka44" or coordinators == {
        group: told.coordinator for group, told in states.items() if group in described
    }


@pytest.mark.deep
def test_commits_expire_when_the_broker_deleted_them(unpacked: Unpacked) -> None:
    # F324, F325: offsets.retention.minutes was 1, and the broker looked round every few seconds. A
    # simple group and one that was left Empty; commits with a time of their own stayed.
    views = views_of(*log_dirs(unpacked("kafka44.logs")))
    of_topic = {"subscribe": "__consumer_offsets"}
    deleted = {
        (row["group_id"], row["topic"]): row["record_timestamp_ms"]
        for row in rows_of_view(views, "offset_commits", options=of_topic)
        if row["is_tombstone"] and "expiring" in row["group_id"]
    }
    chosen = ChosenNames(group_pattern="expiring")

    def told(at_ms: int) -> dict[tuple[str, str], tuple[int, str]]:
        settings = LagQuestion(NOW_MS, at_ms, retention_ms=60_000, chosen=chosen)
        return {
            (row["group_id"], row["topic"]): (row["expires_ms"], row["commit_status"])
            for row in ConsumerLag(views, settings).rows.rows()
        }

    last_moment = min(deleted.values()) - 1
    expires = {key: expires_ms for key, (expires_ms, _) in told(last_moment).items()}
    assert expires.keys() == deleted.keys()
    assert len(expires) == 3
    assert all(0 <= deleted[key] - expires[key] < 8000 for key in expires)
    for moment in (last_moment, min(expires.values()) - 1):
        statuses = {key: status for key, (_, status) in told(moment).items()}
        assert statuses == {
            key: "expired" if expires[key] <= moment else "current" for key in expires
        }
    assert not told(max(deleted.values()))


def test_topics_are_those_the_admin_client_listed_and_one_on_its_way_out(
    unpacked: Unpacked,
) -> None:
    # F327, T38: what a commit's topic id is compared with.
    logs = unpacked("kafka44.logs")
    views = views_of(logs / "log-dirs")
    found = set(topic_directories(views.logs))
    listed = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["topics"]
    told = {(name, facts["topicId"]) for name, facts in listed.items()}
    deleted = "shop.to-be-deleted"
    live = {(each.topic, each.topic_id) for each in found if not each.is_deleted}
    assert live - told == {("__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAQ")}
    assert told - live == {each for each in told if each[0] == deleted}
    (gone,) = (each for each in found if each.is_deleted)
    of_topic = {"subscribe": "__consumer_offsets"}
    commits = rows_of_view(views, "offset_commits", options=of_topic)
    ids = {
        row["topic_id"] for row in commits if row["topic"] == deleted and not row["is_tombstone"]
    }
    assert (gone.topic, {gone.topic_id}) == (deleted, ids)


@pytest.mark.deep
def test_metadata_without_its_beginning_goes_on_from_a_snapshot(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F329: who leads which partition is what the whole log says; a topic that was deleted before is
    # not named any more.
    def told(log_dir: Path) -> tuple[set[Any], set[Any]]:
        (metadata,) = cluster_histories(views_of(log_dir).logs).values()
        live = {key: name for key, name in metadata.names.items() if key not in metadata.deleted}
        led = {(place, each) for place, each in metadata.leaders.items() if place[0] in live}
        return set(live.items()), led

    whole = unpacked("kafka44.logs") / "log-dirs"
    shorter = tmp_path / "logs"
    shutil.copytree(whole, shorter)
    for path in (shorter / "__cluster_metadata-0").iterdir():
        if path.name < "00000000000000000458":
            path.unlink()
    assert told(shorter) == told(whole)
    for path in shorter.glob("__cluster_metadata-0/*.checkpoint"):
        path.unlink()
    assert told(shorter) != told(whole)
