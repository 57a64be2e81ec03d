"""Generations of a real broker's groups, against a replay of what kafka-dump-log printed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from kafkalog import scan
from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.groups.group_generations import GroupGenerations
from tests.support.messages.printed_messages import LINE
from tests.support.repository import Unpack

# Numbers of record types: classic generation; epoch, member, assignment and member's assignment
# of consumer and of share groups.
CLASSIC = "2"
EPOCHS, MEMBERS = {"3": "consumer", "11": "share"}, ("5", "10")
ASSIGNMENTS, MEMBER_ASSIGNMENTS = ("6", "12"), ("7", "13")
Place = tuple[str, int]


class Told(NamedTuple):
    """A generation by the printed records: who joined and left, what moved, None without one
    before."""

    group_id: str
    group_type: str
    generation: int | None
    previous: int | None
    time_ms: int | None
    members: int | None
    joined: list[str] | None
    left: list[str] | None
    moved: int | None


class Group:
    """A group as the records up to here have it."""

    def __init__(self) -> None:
        self.generation: int | None = None
        self.members: set[str] = set()
        self.before: set[str] = set()
        self.owners: dict[str, set[Place]] = {}
        self.owners_before: dict[str, set[Place]] | None = None


def printed(dumped: Path) -> Iterator[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """Timestamp, key and value of each record about a group, partition by partition."""
    for partition in sorted(dumped.glob("__consumer_offsets-*")):
        for path in sorted(partition.glob("*.txt")):
            for line in path.read_text().splitlines():
                found = LINE.fullmatch(line)
                if found is None or not found[2].startswith("key: "):
                    continue
                key, _, value = found[2].removeprefix("key: ").partition(" payload: ")
                time_ms = int(line.split("CreateTime: ")[1].split()[0])
                data = None if value == "<DELETE>" else json.loads(value)["data"]
                yield time_ms, json.loads(key), data


def places(assigned: list[dict[str, Any]]) -> set[Place]:
    return {(each.get("topic") or each["topicId"], p) for each in assigned
            for p in each["partitions"]}  # fmt: skip


def moved(before: dict[str, set[Place]], after: dict[str, set[Place]]) -> int:
    owners = [{(p, member) for member, owned in side.items() for p in owned}
              for side in (before, after)]  # fmt: skip
    return len({place for place, _ in owners[0] ^ owners[1]})


def classic(group: Group, name: str, time_ms: int, data: dict[str, Any] | None) -> Told:
    previous = group.generation
    if data is None:
        group.generation, group.before, group.owners = None, set(), {}
        return Told(name, "classic", None, previous, time_ms, None, None, None, None)
    ids = {member["memberId"] for member in data["members"]}
    owners = {m["memberId"]: places(m["assignment"]["assignedPartitions"])
              for m in data["members"]}  # fmt: skip
    told = Told(
        *(name, "classic", data["generation"], previous, time_ms, len(ids)),
        *(None if previous is None else sorted(ids - group.before),),
        *(None if previous is None else sorted(group.before - ids),),
        *(None if previous is None else moved(group.owners, owners),),
    )
    group.generation, group.before, group.owners = data["generation"], ids, owners
    return told


def replayed(dumped: Path) -> list[Told]:
    """All generations, from one record after another."""
    groups: dict[tuple[str, str], Group] = {}
    told: list[Told] = []
    for time_ms, key, data in printed(dumped):
        number, name = key["type"], key["data"].get("groupId", key["data"].get("group"))
        kind = "classic" if number == CLASSIC else "share" if 9 < int(number) < 16 else "consumer"
        group = groups.setdefault((name, kind), Group())
        member = key["data"].get("memberId")
        if number == CLASSIC:
            told.append(classic(group, name, time_ms, data))
        elif number in MEMBERS:
            (group.members.discard if data is None else group.members.add)(member)
        elif number in MEMBER_ASSIGNMENTS:
            group.owners[member] = places(data["topicPartitions"]) if data else set()
        elif number in ASSIGNMENTS and data is not None:
            if group.owners_before is not None:
                same = (name, kind, data.get("assignmentEpoch"))
                ids = [(row.group_id, row.group_type, row.generation) for row in told]
                place = ids.index(same)
                told[place] = told[place]._replace(moved=moved(group.owners_before, group.owners))
            group.owners_before = dict(group.owners)
        elif number in EPOCHS:
            epoch = None if data is None else data["epoch"]
            previous, is_compared = group.generation, None not in (group.generation, epoch)
            told.append(Told(
                name, kind, epoch, previous, time_ms,
                None if epoch is None else len(group.members),
                sorted(group.members - group.before) if is_compared else None,
                sorted(group.before - group.members) if is_compared else None, None,
            ))  # fmt: skip
            group.generation, group.before = epoch, set(group.members)
    return told


@pytest.fixture(scope="module")
def rows(unpacked: Unpack) -> list[dict[str, Any]]:
    found = scan(unpacked("kafka44.logs") / "log-dirs", "group_generations").to_table()
    order = [(name, "ascending") for name in ("internal_partition", "record_offset")]
    return found.sort_by(order).to_pylist()


def test_generations_are_those_of_a_replay_of_the_printed_records(
    rows: list[dict[str, Any]], unpacked: Unpack
) -> None:
    # F339
    found = [
        Told(*(row[name] for name in (
            "group_id", "group_type", "generation", "previous_generation", "record_timestamp_ms",
            "members", "members_joined", "members_left", "partitions_moved",
        )))
        for row in rows
    ]  # fmt: skip
    expected = replayed(unpacked("kafka44.messages"))
    assert found == expected
    assert {told.group_type for told in found} == {"classic", "consumer", "share"}
    # A partition went from one member to another, and groups were deleted, emptied and upgraded.
    moves = [told.moved for told in found if told.group_id == "shop.g-consumer-active"]
    assert moves == [None, 3]
    assert sum(told.generation is None for told in found) == 7


@pytest.mark.deep
def test_the_newest_state_is_the_one_that_the_admin_client_received(
    rows: list[dict[str, Any]], unpacked: Unpack
) -> None:
    # F339
    groups = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["groups"]
    states = {row["group_id"]: row["state"] for row in rows}
    told = {name: facts["state"] for name, facts in groups.items() if name in states}
    assert {name: states[name] for name in told} == told
    assert sorted(told.values()) == ["Empty"] * 5 + ["Stable"] * 4


@pytest.mark.deep
def test_nothing_is_compared_with_a_generation_that_was_compacted_away(unpacked: Unpack) -> None:
    # F339: as the cleaner would leave the records below 100, the last of each key.
    records = scan(unpacked("kafka44.logs") / "log-dirs", "group_metadata").to_table()
    group = [row for row in records.to_pylist() if row["group_id"] == "shop.g-consumer-empty"]
    group.sort(key=lambda row: row["record_offset"])
    older = {
        (row["record_type"], row["member_id"]): row for row in group if row["record_offset"] < 100
    }
    kept = [*older.values(), *(row for row in group if row["record_offset"] >= 100)]
    generations = GroupGenerations()
    for row in sorted(kept, key=lambda row: row["record_offset"]):
        generations.add(row)
    rows = sorted(generations.rows(), key=lambda row: row["record_offset"])
    names = ("generation", "previous_generation", "members", "partitions_moved")
    found = [tuple(row.get(name) for name in names) for row in rows]
    assert found[:3] == [(4, None, 1, None), (5, 4, 0, 4), (6, 5, 1, 4)]
    assert (rows[0].get("members_joined"), rows[1]["members_joined"]) == (None, [])
    assert len(rows[1]["members_left"]) == 1


def test_a_share_group_has_no_history_of_commits(unpacked: Unpack) -> None:
    """The share group exists: it is not a name that the input lacks."""
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    given = ["lag-history", *map(str, disks), "--group", "g-share", "--group", "g-shade"]
    lines = CliRunner().invoke(kafkalog, given).stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("a share group commits no offset"))
    assert line.endswith(": g-share")
    assert [line.split(";")[0] for line in lines if line.startswith("no rows of")] == [
        "no rows of --group g-shade"
    ]
