"""Jobs read an object store by URIs, with what is in the environment, as they read a disk."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.remote.gateway import SECRET_KEY
from tests.remote.stores import Store, needs_store
from tests.support.jobs.job_runs import needs_delta
from tests.support.repository import EXAMPLES, ROOT

pytestmark = [*needs_store, pytest.mark.spark]
# What depends on when and where a job ran.
_VARYING = re.compile(r"'(modified_ms|[a-z_]*created_at|job_time[a-z_]*)': [^,}]*")


def run(job: str, *arguments: str, table_format: str = "parquet", code: int = 0) -> str:
    """Run a job as a user does; what it said. It ends with this exit code."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "jobs" / f"{job}.py"), *arguments, "--format", table_format],
        env={**environment, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert SECRET_KEY not in said
    return said


def tables(output: Path, written: str, as_if: str) -> dict[str, list[str]]:
    """The rows of all tables, with one path in place of another."""
    return {
        folder.name: sorted(
            _VARYING.sub("", str(row)).replace(written, as_if)
            for row in pq.read_table(folder).to_pylist()
        )
        for folder in sorted(output.iterdir())
    }


@pytest.mark.parametrize(
    ("job", "arguments", "code"),
    [
        ("validate_checksums", [], 0),
        # F940: the checkpoints name partitions of internal topics that are not there.
        ("consumer_lag", ["--as-of", "1795309918000"], 3),
        ("report_transactions", ["--as-of", "1795309918000"], 3),
        ("verify_compaction", ["--as-of", "1795309918000"], 0),
    ],
)
def test_a_job_makes_the_same_tables(
    spark: SparkSession, store: Store, tmp_path: Path, job: str, arguments: list[str], code: int
) -> None:
    """F540."""
    uri, folder = store.bucket(EXAMPLES / "kafka-4.4")
    # Files in a store have whole seconds.
    for path in folder.rglob("*"):
        os.utime(path, (1_795_000_000, 1_795_000_000))
    run(job, uri, "--output-dir", str(tmp_path / "remote"), *arguments, code=code)
    main = importlib.import_module(f"jobs.{job}").main
    local = [
        str(folder),
        "--output-dir",
        str(tmp_path / "local"),
        "--format",
        "parquet",
        *arguments,
    ]
    assert main(local) == code
    expected = tables(tmp_path / "local", "", "")
    assert tables(tmp_path / "remote", uri, str(folder)) == expected
    assert any(expected.values())


def test_salvage_reads_a_store_and_writes_a_disk(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """F540."""
    from jobs.salvage import main

    uri, folder = store.bucket(EXAMPLES / "damaged")
    targets = [tmp_path / "salvaged-remote", tmp_path / "salvaged-local"]
    output = ["--output-dir", str(tmp_path / "tables")]
    run("salvage", uri, *output, "--to", str(targets[0]))
    local = [str(folder), *output, "--to", str(targets[1]), "--format", "json"]
    main([*local[:1], "--output-dir", str(tmp_path / "more"), *local[3:]])
    remote, on_disk = (
        {str(path.relative_to(each)): path.read_bytes() for path in each.rglob("*.log")}
        for each in targets
    )
    assert remote == on_disk
    assert remote


@needs_delta
def test_the_ingest_takes_from_a_store_what_is_new(store: Store, tmp_path: Path) -> None:
    uri, _ = store.bucket(EXAMPLES / "kafka-4.4")
    output = ["--output-dir", str(tmp_path / "tables"), "--topic", "shop.tx"]
    assert "528 offsets" in run("ingest_topics", uri, *output, table_format="delta")
    assert "nothing is new" in run("ingest_topics", uri, *output, table_format="delta")


def test_an_output_within_what_is_read_is_refused(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    from jobs.validate_checksums import main

    uri, _ = store.bucket(EXAMPLES / "kafka-4.4")
    assert main([uri, "--output-dir", uri.replace("s3:", "s3a:") + "/tables"]) == 2
    assert "a directory outside of" in capsys.readouterr().err
