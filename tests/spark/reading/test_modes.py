"""What becomes of damage: FAILFAST, PERMISSIVE, DROPMALFORMED, and checksums left unchecked."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.golden.damaged_variants import FOUND
from tests.support.repository import EXAMPLES, Unpack
from tests.support.spark.kafka_logs import (
    kafkalog_read,
    logged_lines,
    offsets_read,
    said_by_error,
    variants_as_partitions,
)

# Of the topic e.w all 2,800 records are sound before the damage; the batch at 7979 of its last
# segment holds the 61 from 2721 on. Both by recovery.json, which a broker's recovery wrote.
ACTIVE = "00000000000000002663.log"
ALL = list(range(2800))
WITHOUT_THE_BATCH = [*range(2721), *range(2782, 2800)]
# Damage that costs no record does not stop a read.
HARMLESS = {
    "truncated-last-batch": list(range(2782)),
    "truncated-in-header": list(range(2782)),
    "zeroed-tail-appended": ALL,
    "bitflip-leader-epoch": ALL,
    "middle-segment-missing": [*range(463), *range(916, 2800)],
}
# Damage at 7979 that costs other records than those of the batch there.
OTHERWISE = {
    "garbage-block-inserted": ALL,  # between two batches
    "offsets-go-back": ALL,  # a batch that had been there before
    "garbage-middle": list(range(2721)),  # reaches into the next batch, the last one
    "zeroed-tail-overwritten": list(range(2721)),
}


def partition(unpacked: Unpack, variant: str) -> Path:
    (found,) = (unpacked("unclean.logs") / "variants" / variant / "log-dirs").glob("e.?-0")
    return found


@pytest.mark.deep
@pytest.mark.parametrize(
    ("variant", "fault"),
    [
        ("bitflip-payload-active", "checksum"),
        ("zero-hole", "zeros"),
        ("magic-9", "magic"),
        ("codec-7-valid-crc", "codec"),
        ("base-offset-jump", "offset_order"),
    ],
)
def test_failfast_is_the_default_and_stops_with_file_and_position(
    variant: str, fault: str, spark: SparkSession, unpacked: Unpack
) -> None:
    # F68, F75; T1, T2, T12, T13.
    path = partition(unpacked, variant)
    error = said_by_error(lambda: kafkalog_read(spark, path).count())
    assert f"kafkalog.errors.CorruptDataError: {path / ACTIVE}: position 7979" in error
    assert f": {fault}: " in error
    assert "mode=PERMISSIVE reads the sound rest" in error


def test_failfast_can_be_asked_for(spark: SparkSession, unpacked: Unpack) -> None:
    frame = kafkalog_read(spark, partition(unpacked, "magic-9"), mode="failfast")
    assert ": magic: " in said_by_error(frame.count)


@pytest.mark.deep
def test_failfast_does_not_stop_at_what_costs_no_record(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # F69, F72, F73; T3: what a broker that was killed leaves at the end does not count as an error.
    log_dir = tmp_path / "log-dir"
    log_dir.mkdir()
    for variant in HARMLESS:
        (log_dir / f"{variant}-0").symlink_to(partition(unpacked, variant))
    read = offsets_read(kafkalog_read(spark, log_dir, mode="FAILFAST"))
    assert read == {(variant, 0): offsets for variant, offsets in HARMLESS.items()}


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_other_modes_read_what_is_sound_on_both_sides_of_the_damage(
    mode: str, spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # F64, F65, F75; T4: a broker drops everything behind the damage.
    logs = variants_as_partitions(unpacked("unclean.logs") / "variants", tmp_path / "log-dir")
    read = offsets_read(kafkalog_read(spark, logs, mode=mode))
    at_the_batch = {name for name, found in FOUND.items() if found[0][1] == 7979} - {*HARMLESS}
    assert len(at_the_batch) > 10
    expected = {**dict.fromkeys(at_the_batch, WITHOUT_THE_BATCH), **HARMLESS, **OTHERWISE}
    assert {variant: read[variant, 0] for variant in expected} == expected


@pytest.mark.usefixtures("worker_logs")
def test_permissive_logs_each_skipped_range_and_dropmalformed_is_silent(
    spark: SparkSession, unpacked: Unpack
) -> None:
    file = str(partition(unpacked, "zero-hole") / ACTIVE)
    kafkalog_read(spark, Path(file).parent, mode="DROPMALFORMED").count()
    assert logged_lines(spark, file, "skipped") == []
    kafkalog_read(spark, Path(file).parent, mode="PERMISSIVE").count()
    lines = sorted(logged_lines(spark, file, "skipped"))
    assert [line.split(", from offset")[0] for line in lines] == [
        f"{file}: position 12075, 3879 bytes",
        f"{file}: position 7979, 4096 bytes",
    ]


def test_the_bundled_example_is_read_around_its_damage(spark: SparkSession) -> None:
    # The batch at 23728 of the first segment begins with offset 191 (recovery.json).
    read = offsets_read(kafkalog_read(spark, EXAMPLES / "damaged", mode="PERMISSIVE"))
    (offsets,) = read.values()
    missing = sorted(set(ALL) - set(offsets))
    assert (missing[0], offsets == sorted(set(offsets))) == (191, True)
    assert [offset for offset in missing if offset >= 463] == list(range(2721, 2782))
