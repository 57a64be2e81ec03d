"""The offset for a time, against what brokers answered to the admin client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.inspection.logs.time_lookup import offset_for_time
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog

# tiered43 is not among them: its earlier offsets are in the remote store.
SETS = {"kafka44": 150, "kafka39zk": 150}
YEAR_2099 = 4070908800000


def partitions(logs: Path) -> dict[str, PartitionLog]:
    """All partitions of one or several log directories by name."""
    top = logs / "log-dirs"
    paths = [top] if any(top.glob("*-0")) else sorted(top.iterdir())
    return {log.name: log for log in find_partitions([str(path) for path in paths])}


def asked_time(question: str, start_of_run: int) -> int | None:
    """The time that a question in admin.json asks for."""
    if question == "for_time_year_2099":
        return YEAR_2099
    if question == "for_time_0":
        return 0
    found = re.fullmatch(r"for_time_t0_plus_(\d+)", question)
    return start_of_run + int(found[1]) if found else None


@pytest.mark.parametrize("name", SETS)
def test_a_broker_finds_the_same_offset_for_a_time(
    name: str, unpacked: Callable[[str], Path]
) -> None:
    # F99: in compacted, transactional, LogAppendTime topics and internal ones; T7, T8.
    admin = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())
    logs = partitions(unpacked(f"{name}.logs"))
    starts = {
        partition: answer["offset"] for partition, answer in admin["offsets"]["earliest"].items()
    }
    compared = 0
    for question, answers in admin["offsets"].items():
        timestamp = asked_time(question, admin["t0"])
        if timestamp is None:
            continue
        found = {
            partition: offset_for_time(logs[partition], starts[partition], timestamp)
            for partition in answers
        }
        # The admin client says -1 where no record is as late.
        assert {
            partition: -1 if offset is None else offset for partition, offset in found.items()
        } == {partition: answer["offset"] for partition, answer in answers.items()}, question
        compared += len(found)
    assert compared > SETS[name]
