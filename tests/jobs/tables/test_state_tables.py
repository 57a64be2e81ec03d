"""The state job's tables in every format, its words and its exit codes. Rules: F270, F271, F275."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import needs_delta, written_schema
from tests.support.jobs.state_runs import run_state
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import write_log

RECORDS = [
    Record(0, 5000, 0, b"a", b"late in time, not in the log"),
    Record(1, 1000, 0, b"a", b""),
    Record(2, 2000, 0, b"b", b"gone"),
    Record(3, 3000, 0, b"b", None),
    Record(4, 4000, 0, None, b"no key"),
    Record(5, -1, 0, b"", b"empty key", (("trace", None),)),
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    place = tmp_path / "logs"
    add_meta_properties(place)
    write_log(place, "orders-0", {0: [write_batch(RECORDS, BatchFields())]})
    return place


@pytest.mark.deep
@pytest.mark.parametrize(
    "table_format", ["parquet", "json", pytest.param("delta", marks=needs_delta)]
)
def test_both_tables_in_every_format(
    table_format: str, logs: Path, spark: SparkSession, tmp_path: Path
) -> None:
    arguments = f"--format {table_format} --keep-tombstones"
    assert run_state(logs, output=tmp_path, arguments=arguments) == ExitCode.DONE
    origin = ("cluster", 1, str(logs), "orders", 0)
    first_s, third_s = (datetime.fromtimestamp(seconds, UTC) for seconds in (1, 3))
    expected = {
        "state": [
            (*origin, b"a", b"", None, 1, first_s, 1000, "CreateTime", False),
            (*origin, b"b", None, None, 3, third_s, 3000, "CreateTime", True),
            (*origin, b"", b"empty key", [("trace", None)], 5, None, None, "CreateTime", False),
        ],
        "state_partitions": [
            ("cluster", 1, str(logs), "orders", "AAAAAAAAAAAAAAAAAAAAAQ", 0, 0, 6, "log_end", 6,
             None, 0, True),
        ],
    }  # fmt: skip
    for name, rows in expected.items():
        schema = written_schema(name)
        reader = spark.read.format(table_format)
        if table_format == "json":
            reader = reader.schema(schema)
        found = reader.load(str(tmp_path / name))
        assert found.schema == schema  # with the comment on every column
        wanted = spark.createDataFrame(rows, schema)
        assert_df_equality(found, wanted, ignore_row_order=True)


def test_deletes_are_not_rows_by_default(
    logs: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_state(logs, output=tmp_path) == ExitCode.DONE
    rows = spark.read.parquet(str(tmp_path / "state")).collect()
    assert {bytes(row.key) for row in rows} == {b"a", b""}
    said = "2 keys in the table; read 6 offsets, left out 1 record without a key\n"
    assert said in capsys.readouterr().out


@pytest.mark.deep
@needs_delta
def test_records_without_a_key_are_counted_in_every_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F271: in the first run no record has a key, the second finds one that has, the third nothing.
    place = tmp_path / "logs"
    write_log(place, "orders-0", {0: []})
    for batch in ({0: None, 1: None}, {2: None, 3: b"k"}, {}):
        records = [Record(offset, 0, 0, key, b"v") for offset, key in batch.items()]
        with (place / "orders-0" / f"{0:020d}.log").open("ab") as file:
            file.write(write_batch(records) if records else b"")
        assert run_state(place, output=tmp_path, arguments="--format delta") == ExitCode.DONE
    said = [line for line in capsys.readouterr().out.splitlines() if "in the table" in line]
    assert said == [
        "0 keys in the table; read 2 offsets, left out 2 records without a key",
        "1 key in the table; read 2 offsets, left out 1 record without a key",
        "1 key in the table; nothing is new",
    ]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("--as-of-offset 3", ExitCode.WRONG_ARGUMENTS, "for each of orders-0, users-0"),
        ("--topic orders --as-of-offset 7", ExitCode.UNREADABLE_INPUT, "offset 7 of orders-0"),
        ("--as-of-offset orders-0=3", ExitCode.WRONG_ARGUMENTS, "orders-0, users-0"),
        ("--as-of-offset {", ExitCode.WRONG_ARGUMENTS, "--as-of-offset: '{' is not TOPIC-"),
        ("--topic payments", ExitCode.WRONG_ARGUMENTS, "--topic: 'payments'"),
    ],
)
def test_what_is_requested_wrongly_is_said_before_anything_is_read(
    arguments: str,
    code: ExitCode,
    said: str,
    logs: Path,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_log(logs, "users-0", {0: [write_batch(RECORDS, BatchFields())]})
    asked = f"--format parquet {arguments}"
    assert run_state(logs, output=tmp_path / "tables", arguments=asked) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "tables").exists()


@pytest.mark.deep
def test_one_file_of_a_partition_has_no_state(
    logs: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = logs / "orders-0" / f"{0:020d}.log"
    assert run_state(file, output=tmp_path / "tables") == ExitCode.UNREADABLE_INPUT
    assert f"give the directory {file.parent}" in capsys.readouterr().err


@pytest.mark.deep
@pytest.mark.parametrize("variant", ["garbage-middle", "zeroed-tail-overwritten"])
def test_damage_in_the_newest_records_is_reported(
    variant: str,
    spark: SparkSession,
    unpacked: Unpack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    # A broker cuts the log there at its next start (golden/recovery.json tells the new end), so the
    # sound bytes end there too; what was behind is lost all the same.
    log_dir = unpacked("unclean.logs") / "variants" / variant / "log-dirs"
    assert run_state(log_dir, output=tmp_path / "tables") == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"error: {log_dir}/e.w-0/00000000000000002663.log: position ")
    asked = "--format parquet --mode PERMISSIVE"
    assert run_state(log_dir, output=tmp_path / "tables", arguments=asked) == ExitCode.DONE
    skipped = [text for text in caplog.messages if text.endswith("; skipped")]
    assert skipped
    assert all("00000000000000002663.log: position " in text for text in skipped)
