"""Commands that plan for one topic say of it what they say of it among all: its settings and the
node's metadata are in other logs. F169."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import Unpack

# Half an hour after the copy; the topic's retention.ms is an hour.
AS_OF = ("--as-of", "2026-11-25T20:19:00Z")


@pytest.fixture(scope="module")
def disk(unpacked: Unpack) -> Path:
    return unpacked("restore44.logs") / "snapshots" / "node1" / "data"


def run(*arguments: object) -> list[str]:
    result = CliRunner().invoke(kafkalog, [*map(str, arguments), "--processes", "1"])
    return result.stdout.splitlines()


def rows(*arguments: object) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in run(*arguments, "--format", "json")]
    return [row for row in found if row["topic"] in ("events", "state")]


@pytest.mark.parametrize(
    "command",
    [
        ("retention", "--by", "segment", *AS_OF),
        ("compaction", "--by", "partition", *AS_OF),
        ("recover", "--all"),
    ],
    ids=lambda command: command[0],
)
def test_a_plan_for_topics_is_part_of_the_plan_for_all(
    command: tuple[str, ...], disk: Path
) -> None:
    name, *options = command
    of_topics = rows(name, disk, *options, "--topic", "events", "--topic", "state")
    assert of_topics
    assert of_topics == rows(name, disk, *options)


def test_retention_of_a_topic_knows_what_the_metadata_sets(disk: Path) -> None:
    # `kafka-configs` has set it: admin/ of the fixture.
    segments = rows("retention", disk, "--by", "segment", "--topic", "events", *AS_OF)
    assert {row["retention_ms"] for row in segments if row["topic"] == "events"} == {3_600_000}


def test_recover_of_a_topic_knows_the_node_s_metadata(disk: Path) -> None:
    said = run("recover", disk, "--topic", "events")
    assert said[0].startswith("Node 1 starts with Kafka 4.4")
    assert "NOT KNOWN" not in "\n".join(said)
