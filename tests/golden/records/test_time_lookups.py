"""The offset for a time, against what brokers answered to the admin client."""

import json

import pytest

from kafkalog.inspection.logs.time_lookup import offset_for_time
from tests.support.golden.answered_offsets import partitions, time_in_question
from tests.support.repository import Unpack

# tiered43 is not among them: its earlier offsets are in the remote store.
SETS = {"kafka44": 150, "kafka39zk": 150}


@pytest.mark.parametrize("name", SETS)
def test_a_broker_finds_the_same_offset_for_a_time(name: str, unpacked: Unpack) -> None:
    # F99: in compacted, transactional, LogAppendTime topics and internal ones; T7, T8.
    admin = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())
    logs = partitions(unpacked(f"{name}.logs"))
    starts = {
        partition: answer["offset"] for partition, answer in admin["offsets"]["earliest"].items()
    }
    compared = 0
    for question, answers in admin["offsets"].items():
        timestamp = time_in_question(question, admin["t0"])
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
