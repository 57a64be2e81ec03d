"""Jobs and views on a disk that fails, in Spark's own processes. Rules: docs/format.md F77, F78."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.disks.failing_disk import FailingDisk, needs_compiler
from tests.support.disks.outside_pages import offsets_outside

pytestmark = [needs_compiler, pytest.mark.spark]
SEGMENT = "orders-0/00000000000000000000.log"

_READ_BY_MODE = """
import json, sys
import kafkalog
from kafkalog.spark.session import job_session

with job_session("test", with_delta=False) as spark:
    kafkalog.register(spark)
    records = spark.read.format("kafkalog").option("subscribe", "orders")
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        rows = records.option("mode", mode).load(sys.argv[1]).where("partition = 0")
        print(json.dumps(sorted(row.offset for row in rows.select("offset").collect())))
    try:
        records.option("mode", "FAILFAST").load(sys.argv[1]).collect()
    except Exception as error:
        print(json.dumps(str(error)))
"""


@pytest.mark.deep
def test_a_job_writes_its_tables_and_ends_with_exit_code_3(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    disk.fail_pages(logs / SEGMENT, 2)
    disk.fail_open(logs / "customers-0", "denied")
    arguments: list[str | Path] = [
        logs,
        "--output-dir",
        tmp_path / "tables",
        "--format",
        "parquet",
        "--show",
        "0",
    ]
    ended = disk.job("validate_checksums", arguments)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    faults = pq.read_table(tmp_path / "tables" / "faults").to_pylist()
    assert {(row["file"], row["kind"]) for row in faults} == {(str(logs / SEGMENT), "unreadable")}
    assert faults[0]["detail"] == "bytes 8192 to 12287 cannot be read: Input/output error"
    assert f"{logs / SEGMENT}: bytes 8192 to 12287 cannot be read: Input/output error\n" in (
        ended.stderr
    )
    assert f"{logs}/customers-0 cannot be read and is left out: Permission denied" in ended.stderr


# In the short pass a job that is run by itself says the same.
@pytest.mark.deep
def test_a_job_that_spark_submit_starts_ends_with_exit_code_3_too(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    # Its JVM, whose environment tasks have, is there before the job.
    disk.fail_pages(logs / SEGMENT, 2)
    submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]"]
    arguments: list[str | Path] = [
        logs,
        "--output-dir",
        tmp_path / "tables",
        "--format",
        "parquet",
        "--show",
        "0",
    ]
    ended = disk.run(*submit, "jobs/validate_checksums.py", *map(str, arguments))
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    # It writes what the job writes to stderr to stdout.
    assert f"{logs / SEGMENT}: bytes 8192 to 12287 cannot be read: Input/output error\n" in (
        ended.stdout
    )


@pytest.mark.deep
def test_the_modes_do_with_unreadable_bytes_what_they_do_with_damage(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    disk.fail_pages(logs / SEGMENT, 2)
    script = tmp_path / "read_by_mode.py"
    script.write_text(_READ_BY_MODE)
    ended = disk.run(sys.executable, str(script), str(logs))
    permissive, dropping, failure = (json.loads(line) for line in ended.stdout.splitlines())
    later = offsets_outside(logs / "orders-0/00000000000000000712.log")
    assert permissive == dropping == offsets_outside(logs / SEGMENT, 2) + later
    assert f"{logs / SEGMENT}: position " in failure
    assert "unreadable: bytes 8192 to 12287 cannot be read: Input/output error" in failure
