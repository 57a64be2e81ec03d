"""A bounded read is the full read, filtered: offsets and times as in Spark's Kafka source."""

import json
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kafkalog
from tests.support.logs.samples import batch
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import (
    consumed_offsets,
    kafkalog_read,
    offsets_read,
    ordinary_topics,
    said_by_error,
    within,
    write_log,
)

SETS = {"kafka44": "log-dirs", "kafka39zk": "log-dirs/*"}
# What Kafka's admin client looked up: the name of the answer, and milliseconds after t0.
TIMES = {"for_time_t0_plus_20000": 20_000, "for_time_t0_plus_100000": 100_000}
YEAR_2099_MS = 4_070_908_800_000
MULTI = "shop.multi-3-part-0"
# Ends of its partitions, by kafka-get-offsets.
ENDS = {0: 1225, 1: 1183, 2: 1392}


def json_of(offsets: Mapping[int, int]) -> str:
    return json.dumps({MULTI: {str(partition): offset for partition, offset in offsets.items()}})


def by_topic(offsets: Mapping[tuple[str, int], int]) -> str:
    parsed: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        parsed.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(parsed)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {}),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, {}),
        ({"startingOffsets": "EARLIEST", "endingOffsets": "Latest"}, {}),
        (
            {"startingOffsets": json_of({0: 100, 1: -2, 2: 1391})},
            {0: (100, 1225), 1: (0, 1183), 2: (1391, 1392)},
        ),
        ({"endingOffsets": json_of({0: 1, 1: -1, 2: 600})}, {0: (0, 1), 1: (0, 1183), 2: (0, 600)}),
        (
            {
                "startingOffsets": json_of({0: 839, 1: 860, 2: 530}),
                "endingOffsets": json_of({0: 1031, 1: 860, 2: 533}),
            },
            {0: (839, 1031), 1: (0, 0), 2: (530, 533)},  # at segments' borders, none of partition 1
        ),
        # The log's very end is an offset that exists: there will be a record.
        ({"startingOffsets": json_of(ENDS)}, {0: (0, 0), 1: (0, 0), 2: (0, 0)}),
        ({"endingOffsets": json_of(ENDS)}, {}),
    ],
)
def test_offsets_bound_a_read(
    options: dict[str, str],
    asked: dict[int, tuple[int, int]],
    spark: SparkSession,
    unpacked: Unpack,
) -> None:
    # F95, F96. Starts are inclusive, ends exclusive, -2 is earliest, -1 latest.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    everything = {(MULTI, partition): (0, end) for partition, end in ENDS.items()}
    wanted = {**everything, **{(MULTI, partition): range_ for partition, range_ in asked.items()}}
    read = offsets_read(kafkalog_read(spark, logs / "log-dirs", subscribe=MULTI, **options))
    received = consumed_offsets(golden, [MULTI])
    assert received[MULTI, 0][-1] == ENDS[0] - 1
    assert read == within(received, wanted)


@pytest.mark.deep
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("time", TIMES)
def test_times_are_looked_up_as_kafkas_admin_client_does(
    name: str, time: str, spark: SparkSession, unpacked: Unpack
) -> None:
    # F99, on all ordinary topics at once: compacted, transactional, with times out of order.
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    admin = json.loads((golden / "admin.json").read_text())
    found, latest = (_ordinary(admin["offsets"][answer]) for answer in (time, "latest"))
    timestamp = admin["t0"] + TIMES[time]
    received = consumed_offsets(golden, ordinary_topics(golden))
    place = logs / SETS[name]

    # A time that no record reaches: no rows with this strategy, as in Spark's Kafka source.
    after = {key: (latest[key] if at < 0 else at, latest[key]) for key, at in found.items()}
    for starting in (
        {"startingTimestamp": str(timestamp)},
        {"startingOffsetsByTimestamp": by_topic(dict.fromkeys(found, timestamp))},
    ):
        options = {**starting, "startingOffsetsByTimestampStrategy": "latest"}
        assert offsets_read(kafkalog_read(spark, place, **options)) == within(received, after)

    # As an end the same means latest.
    before = {key: (0, latest[key] if at < 0 else at) for key, at in found.items()}
    for ending in (
        {"endingTimestamp": str(timestamp)},
        {"endingOffsetsByTimestamp": by_topic(dict.fromkeys(found, timestamp))},
    ):
        assert offsets_read(kafkalog_read(spark, place, **ending)) == within(received, before)


def _ordinary(answers: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, int], int]:
    offsets: dict[tuple[str, int], int] = {}
    for name, answer in answers.items():
        topic, _, partition = name.rpartition("-")
        if not topic.startswith("__"):
            offsets[topic, int(partition)] = answer["offset"]
    return offsets


@pytest.mark.deep
def test_a_time_later_than_all_records_of_a_partition_is_an_error(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # F99; Kafka's answer for shop.tx in 2099 is -1.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    answers = json.loads((golden / "admin.json").read_text())["offsets"]["for_time_year_2099"]
    assert answers["shop.tx-0"]["offset"] == -1
    options = {"subscribe": "shop.tx", "startingTimestamp": str(YEAR_2099_MS)}
    error = said_by_error(lambda: kafkalog_read(spark, logs / "log-dirs", **options).count())
    assert f"startingTimestamp: {YEAR_2099_MS} is not valid, expected a time not after" in error
    assert "shop.tx-0" in error
    assert "startingOffsetsByTimestampStrategy=latest" in error
    frame = kafkalog_read(
        spark, logs / "log-dirs", startingOffsetsByTimestampStrategy="latest", **options
    )
    assert frame.count() == 0


def test_a_global_time_wins_over_times_by_partition_and_these_over_offsets(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Spark's KafkaSourceProvider.getKafkaOffsetRangeLimit. Record n has the time 1000 + n.
    write_log(tmp_path, "orders-0", {0: [batch(0, 10)], 10: [batch(10, 10)]})
    orders = ("orders", 0)
    options = {"startingOffsets": by_topic({orders: 3}), "endingOffsets": by_topic({orders: 18})}
    expected = {orders: list(range(3, 18))}
    assert offsets_read(kafkalog_read(spark, tmp_path, **options)) == expected
    options["startingOffsetsByTimestamp"] = by_topic({orders: 1005})
    options["endingOffsetsByTimestamp"] = by_topic({orders: 1016})
    expected = {orders: list(range(5, 16))}
    assert offsets_read(kafkalog_read(spark, tmp_path, **options)) == expected
    options |= {"startingTimestamp": "1009", "endingTimestamp": "1011"}
    assert offsets_read(kafkalog_read(spark, tmp_path, **options)) == {orders: [9, 10]}


@pytest.mark.deep
def test_up_to_the_high_watermark_a_consumer_had_received_everything(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # F97 on a real broker's checkpoint, after a clean stop.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    frame = kafkalog_read(spark, logs / "log-dirs", stopAt="highWatermark")
    assert offsets_read(frame) == consumed_offsets(golden, ordinary_topics(golden))


def test_times_are_a_filter_and_offsets_are_python_values(
    spark: SparkSession, unpacked: Unpack
) -> None:
    # F504: the full read, filtered.
    place = str(unpacked("kafka44.logs") / SETS["kafka44"])
    whole = kafkalog.read(spark, place, columns="partition,offset,timestamp", topics=MULTI)
    rows = sorted(map(tuple, whole.collect()))
    times = sorted(row[2] for row in rows)
    first, end = (times[len(times) * part // 10].replace(tzinfo=UTC) for part in (4, 6))
    found = kafkalog.read(
        spark,
        place,
        columns=["partition", "offset", "timestamp"],
        topics=[MULTI],
        from_time=first,
        until_time=end,
    )
    asked = [row for row in rows if first <= row[2].replace(tzinfo=UTC) < end]
    assert sorted(map(tuple, found.collect())) == asked
    assert 0 < len(asked) < len(rows)
    bounded = kafkalog.read(spark, place, topics={MULTI: [0, 2]}, offsets=(500, 600))
    assert bounded.count() == 200
