"""Coordinators that a real broker could load at its start, and those that it could not."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.questions.groups.coordinators import CoordinatorSettings, coordinators
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import LocalViews
from tests.support.golden.startup_cases import startup_case_names, startup_cases

# A broker that ends, or that is no longer the leader, says nothing about records.
_OF_A_RECORD = ("Replaying record", "Deserializing record")
_OFFSET = re.compile(r"offset=(\d+)")


@pytest.mark.parametrize("name", startup_case_names())
def test_the_same_coordinators_load(
    name: str, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1000 to F1002.
    case = startup_cases(unpacked)[name]
    if not case.outcome["started"] or case.runs_as_other:
        # Its coordinators never came to load.
        assert not case.outcome["group_load_errors"] or case.runs_as_other
        return
    said = [line for line in case.outcome["group_load_errors"] if line.startswith(_OF_A_RECORD)]
    folder = case.made_in(tmp_path)
    log_dirs = [str(path) for path in sorted(folder.glob("d[0-9]"))]
    views = LocalViews(log_dirs, find_partitions(log_dirs, strict=False), 1)
    loads = coordinators(views, CoordinatorSettings(case.kafka_version))
    stopped = [load for load in loads if not load.loads]
    assert bool(stopped) == bool(said)
    assert all(load.topic == CONSUMER_OFFSETS for load in stopped)
    if said and (match := _OFFSET.search(said[0])):
        assert [load.offset for load in stopped] == [int(match[1])]
    groups = {each.partition(":")[0] for each in case.outcome["groups"] or ()}
    for load in loads:
        # Its commits are there, and the broker that has loaded them knows no such group.
        assert not groups.intersection(load.unserved)
        skips = any("Unknown record type" in line for line in case.outcome["decisive_lines"])
        if load.topic == CONSUMER_OFFSETS and load.loads:
            assert bool(load.skipped) == skips


def test_a_group_of_another_type_stops_the_coordinator(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1002 and F1008: classic group h, then a member of a consumer group h.
    case = startup_cases(unpacked)["06a-classic-then-member"]
    log_dirs = [str(case.made_in(tmp_path) / "d2")]
    views = LocalViews(log_dirs, find_partitions(log_dirs, strict=False), 1)
    (load,) = coordinators(views, CoordinatorSettings(case.kafka_version))
    assert (load.offset, load.record_name) == (18, "ConsumerGroupMemberMetadata")
    assert load.reason == "group h is a classic group by the records before, not a consumer group"
    assert load.waiting == len({"g", "g2", "h"})


def test_a_tombstone_of_a_classic_group_takes_commits_away(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1002: kafka-consumer-groups calls g2 dead then.
    case = startup_cases(unpacked)["06c-classic-tombstone-of-consumer-group"]
    log_dirs = [str(case.made_in(tmp_path) / "d2")]
    views = LocalViews(log_dirs, find_partitions(log_dirs, strict=False), 1)
    (load,) = coordinators(views, CoordinatorSettings(case.kafka_version))
    assert load.loads and load.unserved == ["g2"]
    assert "DEAD" in case.outcome["commits"]["g2?"]
