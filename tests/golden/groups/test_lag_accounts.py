"""Lag from any offset of real brokers' logs, against what real consumers received from there on."""

import json

import numpy as np
import pytest

from kafkalog.inspection.lag.lag_columns import lag_accounts
from tests.support.golden.answered_offsets import partitions, printed_offsets, time_in_question
from tests.support.golden.fixture_sets import CONSUMERS, consumed, topics
from tests.support.lag.lag_identity import assert_parts_add_up
from tests.support.repository import Unpack

NO_OFFSET = -1
FAR_MS = 2**62


@pytest.mark.parametrize(
    ("name", "consumer"),
    [*CONSUMERS.items(), ("kafka44", "read_committed"), ("kafka39zk", "read_committed")],
)
def test_from_every_offset_as_much_is_readable_as_a_consumer_received(
    name: str, consumer: str, unpacked: Unpack
) -> None:
    # F310, F311, F313, F315: compacted, transactional, emptied, old and tiered topics; T31.
    golden = unpacked(f"{name}.golden")
    logs = partitions(unpacked(f"{name}.logs"))
    for topic in topics(golden, consumer):
        received = consumed(golden, topic, consumer)
        for log in (found for found in logs.values() if found.topic == topic):
            rows = [row for row in received if row["partition"] == log.partition]
            offsets = np.array([row["offset"] for row in rows], dtype=np.int64)
            end = int(offsets[-1]) + 1 if rows else 0
            asked = np.arange(0, end + 3)
            found = lag_accounts(
                log, asked, read_committed=consumer == "read_committed", now_ms=FAR_MS
            )
            assert_parts_add_up(found)
            start = (found.in_tiered_storage + found.log_start_offset).max()
            places = np.searchsorted(offsets, np.maximum(asked, start))
            assert (found.readable_records == len(offsets) - places).all(), log.name
            following = np.append(offsets, NO_OFFSET)[places]
            is_local = found.in_tiered_storage == 0
            assert (found.next_offset[is_local] == following[is_local]).all(), log.name
            times = np.append([row["timestamp"] for row in rows], NO_OFFSET)[places]
            assert (found.next_timestamp_ms[is_local] == times[is_local]).all(), log.name


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_where_a_log_ended_is_what_a_broker_answers_for_a_time(name: str, unpacked: Unpack) -> None:
    # F312: the Admin client looked up the first offset at or after some times.
    admin = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())
    logs = partitions(unpacked(f"{name}.logs"))
    compared = 0
    for question, answers in admin["offsets"].items():
        time_ms = time_in_question(question, admin["t0"])
        if time_ms is None:
            continue
        for partition, answer in answers.items():
            moment = np.array([time_ms - 1])
            # Brokers believe timestamps of the future, and some topics have them.
            found = lag_accounts(
                logs[partition], np.array([0]), moment, read_committed=False, now_ms=FAR_MS
            )
            end = admin["offsets"]["latest"][partition]["offset"]
            told = end if answer["offset"] == -1 else answer["offset"]
            assert found.high_watermark.tolist() == [told], (question, partition)
            compared += 1
    assert compared > 100


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "tiered43"])
def test_the_high_watermark_is_the_end_that_the_tool_printed(name: str, unpacked: Unpack) -> None:
    # F311, also where the broker did not stop cleanly; F316.
    ends = printed_offsets(unpacked(f"{name}.golden"), -1)
    starts = printed_offsets(unpacked(f"{name}.golden"), -2)
    logs = partitions(unpacked(f"{name}.logs"))
    for key, end in ends.items():
        found = lag_accounts(logs[key], np.array([0]), read_committed=False, now_ms=FAR_MS)
        assert found.high_watermark.tolist() == [end], key
        assert found.log_start_offset.tolist() == [starts[key]], key
        assert found.lag.tolist() == [end]
        assert_parts_add_up(found)
