"""Views `batches`, `byte_ranges` and `faults`: what the bytes are, sound or not."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.golden.fixture_sets import dumped_batches, unique_segments
from tests.support.repository import EXAMPLES, ROOT, Unpack
from tests.support.spark.kafka_logs import kafkalog_read, variants_as_partitions

TABLES = ROOT / "schemas" / "tables"


@pytest.fixture(scope="module")
def variants(unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with all hand-damaged copies, each as a topic."""
    place = tmp_path_factory.mktemp("variants") / "log-dir"
    return variants_as_partitions(unpacked("unclean.logs") / "variants", place)


def test_every_batch_is_what_kafka_dump_log_printed(spark: SparkSession, unpacked: Unpack) -> None:
    # F10 to F14, F31, F60; T5, T6, T19.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    expected = {
        str(segment.path): [_as_columns(line) for line in dumped_batches(golden, segment) or []]
        for segment in unique_segments(logs)
    }
    columns = "file,position,size,base_offset,last_offset,records,compression,crc,is_valid"
    frame = kafkalog_read(spark, logs / "log-dirs", view="batches", subscribe="*", columns=columns)
    read: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in frame.orderBy("file", "position").toArrow().to_pylist():
        file, *values = row.values()
        read[file].append(tuple(values))
    assert sum(map(len, expected.values())) > 500
    assert dict(read) == {path: batches for path, batches in expected.items() if batches}


def _as_columns(line: dict[str, str]) -> tuple[Any, ...]:
    numbers = (
        int(line[name]) for name in ("position", "size", "baseOffset", "lastOffset", "count")
    )
    return (*numbers, line["compresscodec"], int(line["crc"]), line["isvalid"] == "true")


@pytest.mark.deep
def test_a_bad_batch_is_reported_in_view_batches(spark: SparkSession, variants: Path) -> None:
    # F11, F63, F75; T1, T13.
    frame = kafkalog_read(spark, variants, view="batches").where("position = 7979")
    active = frame.where(F.col("file").endswith("00000000000000002663.log"))
    rows = {row.topic: row for row in active.collect()}
    for variant, fault, is_valid in (
        ("as-killed", None, True),
        ("bitflip-payload-active", "checksum", False),
        ("bitflip-header-crc", "checksum", False),
        ("record-count-wrong-valid-crc", "record_count", True),
        ("codec-7-valid-crc", "codec", True),
    ):
        row = rows[variant]
        assert (row.fault, row.is_valid) == (fault, is_valid), variant
        assert (row.crc == row.computed_crc) is is_valid, variant


@pytest.mark.deep
def test_crcs_are_not_computed_when_not_asked_for(spark: SparkSession) -> None:
    options = {"kafka.check.crcs": "false", "view": "batches"}
    frame = kafkalog_read(spark, EXAMPLES / "damaged", **options)
    seen = frame.agg(F.count("crc"), F.count("computed_crc"), F.count("is_valid")).first()
    assert seen is not None
    assert seen[0] > 0
    assert tuple(seen)[1:] == (0, 0)


@pytest.mark.deep
def test_faults_are_the_byte_ranges_that_have_a_kind(spark: SparkSession) -> None:
    ranges = kafkalog_read(spark, EXAMPLES / "damaged", view="byte_ranges")
    faults = kafkalog_read(spark, EXAMPLES / "damaged", view="faults")
    assert_df_equality(faults, ranges.where("kind IS NOT NULL"), ignore_row_order=True)


@pytest.mark.deep
def test_byte_ranges_say_which_cluster_broker_and_input_they_are_of(spark: SparkSession) -> None:
    # F82.
    properties = (EXAMPLES / "damaged" / "meta.properties").read_text()
    frame = kafkalog_read(spark, EXAMPLES / "damaged", view="byte_ranges")
    places = frame.select("cluster_id", "broker_id", "input_path", "topic", "partition")
    (row,) = places.distinct().collect()
    assert tuple(row) == ("E00000000000000000005w", 1, str(EXAMPLES / "damaged"), "e.w", 0)
    assert f"cluster.id={row.cluster_id}" in properties
