"""What Kafka's tools printed of consumer groups on the live broker, as plain values."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple


class PrintedState(NamedTuple):
    """A line of kafka-consumer-groups --describe --state."""

    coordinator: int
    assignor: str | None
    state: str
    members: int


class PrintedMember(NamedTuple):
    """A line of kafka-consumer-groups --describe --members --verbose."""

    member_id: str
    instance_id: str | None
    host: str
    client_id: str
    partitions: int


class PrintedLag(NamedTuple):
    """A line of kafka-consumer-groups --describe: a dash is None."""

    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    host: str | None
    client_id: str | None


def admin_groups(golden: Path) -> dict[str, dict[str, Any]]:
    """What the Admin client answered about each group."""
    groups: dict[str, dict[str, Any]] = json.loads((golden / "admin.json").read_text())["groups"]
    return groups


def printed_states(golden: Path) -> dict[str, PrintedState]:
    """By group; before 4.0 the tool left the assignor out where it now prints a dash."""
    told = {}
    for group, line in _lines(golden, "groups_state.txt"):
        _, broker, *assignor, state, members = line.split()
        name = assignor[0] if assignor and assignor[0] != "-" else None
        told[group] = PrintedState(int(broker.strip("()")), name, state, int(members))
    return told


def printed_members(golden: Path) -> dict[str, list[PrintedMember]]:
    """By group, sorted; groups without members are left out."""
    told: dict[str, list[PrintedMember]] = {}
    has_instance = False
    for line in (golden / "tools" / "groups_members.txt").read_text().splitlines():
        if line.startswith("GROUP "):
            has_instance = "GROUP-INSTANCE-ID" in line
            continue
        for group in _groups_of(golden, line):
            member, *rest = line.removeprefix(group).split()
            instance = rest.pop(0) if has_instance else None
            host, client, partitions, *_ = rest
            told.setdefault(group, []).append(
                PrintedMember(member, instance, host, client, int(partitions))
            )
    return {group: sorted(members) for group, members in told.items()}


def printed_lags(golden: Path) -> dict[tuple[str, str, int], PrintedLag]:
    """By group, topic and partition."""
    if (golden / "tools" / "groups_describe.txt").exists():
        lines = list(_lines(golden, "groups_describe.txt"))
    else:  # a file for each group, where long members run into their hosts
        lines = [
            (f"old.{path.stem.removeprefix('groups_kafka_')}", re.sub(r"(\S)/", r"\1 /", line))
            for path in sorted(golden.glob("tools/groups_kafka_*.txt"))
            for line in path.read_text().splitlines()
            if line and not line.startswith("TOPIC ")
        ]
    told = {}
    for group, line in lines:
        topic, partition, *numbers, member, host, client = line.split()
        offset, end, lag = (None if text == "-" else int(text) for text in numbers)
        who = (None if text == "-" else text for text in (member, host, client))
        told[group, topic, int(partition)] = PrintedLag(offset, end, lag, *who)
    return told


def _lines(golden: Path, name: str) -> list[tuple[str, str]]:
    """The lines about groups, and what follows the group's name, which may have spaces."""
    return [
        (group, line.removeprefix(group))
        for line in (golden / "tools" / name).read_text().splitlines()
        for group in _groups_of(golden, line)
    ]


def _groups_of(golden: Path, line: str) -> list[str]:
    return [group for group in admin_groups(golden) if line.startswith(f"{group} ")]
