"""Which jars a version of Spark is given, which versions are refused, and of which there is a word.

The names of jars are those in Maven Central: delta-spark_<Spark>_<Scala>, from Delta 4.4 on.
"""

import logging
from pathlib import Path

import pytest

from kafkalog.errors import KafkaLogError, OptionError
from kafkalog.log_lines import forget_warnings
from kafkalog.spark_versions import SparkVersion, check_version, settings_for, submitted_version
from kafkalog.submit_arguments import submit_arguments


@pytest.mark.parametrize(
    ("version", "delta", "avro"),
    [
        ("4.0.5", "delta-spark_4.0_2.13:4.4.0", "spark-avro_2.13:4.0.2"),
        ("4.1.4", "delta-spark_4.1_2.13:4.4.0", "spark-avro_2.13:4.1.1"),
        ("4.2.1", "delta-spark_4.2_2.13:4.4.0", "spark-avro_2.13:4.2.0"),
        ("4.2.0-amzn-1", "delta-spark_4.2_2.13:4.4.0", "spark-avro_2.13:4.2.0"),
        ("4.3.0", None, "spark-avro_2.13:4.2.0"),
        ("4.9.1", None, "spark-avro_2.13:4.9.1"),
    ],
)
def test_a_spark_has_jars_of_its_own(version: str, delta: str | None, avro: str) -> None:
    spark = SparkVersion.of(version)
    assert spark.delta_package == (delta and f"io.delta:{delta}")
    assert spark.avro_package == f"org.apache.spark:{avro}"


def test_settings_without_delta_fetch_nothing() -> None:
    settings = settings_for(SparkVersion.of("4.3.0"), with_delta=False)
    assert not [key for key in settings if "jars" in key or "delta" in key]
    assert not [value for value in settings.values() if "delta" in value]
    with_avro = settings_for(SparkVersion.of("4.3.0"), with_delta=False, with_avro=True)
    assert with_avro["spark.jars.packages"] == "org.apache.spark:spark-avro_2.13:4.2.0"


def test_a_spark_without_delta_is_refused_with_what_to_do() -> None:
    SparkVersion.of("4.2.1").refuse_delta()
    with pytest.raises(OptionError, match=r"expected parquet or json: no Delta .* Spark 4\.3\.0"):
        SparkVersion.of("4.3.0").refuse_delta()


def test_a_newer_spark_is_a_warning_once_and_an_older_one_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forget_warnings()
    with caplog.at_level(logging.WARNING):
        for version in ("4.0.0", "4.3.1", "5.0.0", "5.0.0"):
            check_version(version)
    (said,) = caplog.messages
    assert said.startswith("Spark 5.0.0 is newer than this kafkalog, which was tried with 4.0 to")
    with pytest.raises(KafkaLogError, match=r"Spark 3\.5\.1 is too old"):
        check_version("3.5.1")


def test_the_spark_of_spark_submit_is_that_of_spark_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    found = submitted_version()
    assert found is not None and found.text == "4.1.4"
    packages = "spark.jars.packages=io.delta:delta-spark_4.1_2.13:4.4.0"
    assert packages in submit_arguments("ingest-topics", ["DIR"])
    avro = "spark.jars.packages=org.apache.spark:spark-avro_2.13:4.1.1"
    given = ["DIR", "--format=parquet", "--value-format", "confluent-avro"]
    assert avro in submit_arguments("ingest-topics", given)


def test_a_page_needs_no_delta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert "--properties-file" not in submit_arguments("report", ["DIR"])
    with pytest.raises(OptionError, match="no Delta is known"):
        submit_arguments("salvage", ["DIR"])
