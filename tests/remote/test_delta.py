"""Delta tables in an object store: tasks write by pyarrow, the driver commits by Hadoop's S3A, set
up as docs/ingest.md shows it. Rules: F530 and F916."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.remote.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.remote.stores import Store, needs_store
from tests.support.broker.class_paths import ClassPathError, class_path
from tests.support.fetched_packages import fetched_packages
from tests.support.jobs.job_runs import needs_delta
from tests.support.lake.exports import view_rows
from tests.support.repository import ROOT, SHOP, delta_jars

pytestmark = [*needs_store, needs_delta]
_DUCKDB = ("duckdb-delta", "duckdb==1.4.4", "duckdb-ext-delta==1.4.4.20260205",
           "duckdb-ext-httpfs==1.4.4.20260205")  # fmt: skip
_BY_DUCKDB = """
import sys
from pathlib import Path
import duckdb
import duckdb_ext
folder = next(Path(next(iter(duckdb_ext.__path__))).rglob("delta.duckdb_extension")).parent
for name in ("httpfs", "delta"):
    duckdb.execute(f"LOAD '{folder / name}.duckdb_extension'")
duckdb.execute(sys.argv[1])
print(duckdb.execute(sys.argv[2]).fetchall())
"""
# A run that has written its files when another one, of another driver, begins and ends.
_OVERTAKEN = """
import subprocess
import sys
import kafkalog
from kafkalog.errors import StatePositionError
from kafkalog.spark.lake.delta_table import DeltaTarget
from kafkalog.spark.session import job_session
logs, output, *other_run = sys.argv[1:]
usual = DeltaTarget.commit
def late(*given):
    DeltaTarget.commit = usual
    subprocess.run(other_run, check=True, stdout=subprocess.DEVNULL)
    usual(*given)
with job_session("late", with_delta=True) as spark:
    DeltaTarget.commit = late
    try:
        kafkalog.export(spark, logs, output)
    except StatePositionError as error:
        print(error)
    print(kafkalog.export(spark, logs, output))
    spark.sql(f"OPTIMIZE delta.`{output}/ingested_records`")
    print(spark.read.format("delta").load(f"{output}/ingested_records").count())
"""


@pytest.fixture
def environment(
    gateway: Gateway, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The environment of a driver with S3A. Skips the test where its jars cannot be fetched."""
    try:
        jars = [*map(str, delta_jars()), *class_path("s3a").split(os.pathsep)]
    except ClassPathError as error:
        pytest.skip(str(error))
    # The proxy passes on what reads; these tests write.
    place = f"http://127.0.0.1:{gateway.port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", place)
    settings = tmp_path / "s3.conf"
    page = (ROOT / "docs" / "ingest.md").read_text(encoding="utf-8")
    shown = re.findall(r"^spark\.hadoop\.\S+ +\S+$", page, re.MULTILINE)
    settings.write_text("\n".join(shown).replace("http://store:9000", place), encoding="utf-8")
    loopback = [f"spark.driver.{name}=127.0.0.1" for name in ("bindAddress", "host")]
    given = " ".join(f"--conf {each}" for each in (*loopback, "spark.ui.enabled=false"))
    return {
        **{name: value for name, value in os.environ.items() if "SPARK" not in name},
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": (
            f"--jars {','.join(jars)} --properties-file {settings} {given} --master local[2] "
            "pyspark-shell"
        ),
    }


def run(environment: dict[str, str], *arguments: str) -> list[str]:
    """What a program of Python prints that ends well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert SECRET_KEY not in done.stdout + done.stderr
    return done.stdout.splitlines()


def ingest(environment: dict[str, str], output: str, *arguments: str) -> list[str]:
    given = ("--output-dir", output, *arguments)
    return run(environment, str(ROOT / "jobs" / "ingest_topics.py"), str(SHOP), *given)


def by_duckdb(gateway: Gateway, columns: str, table: str) -> list[tuple[object, ...]]:
    """What DuckDB finds in a Delta table."""
    secret = (
        f"CREATE SECRET (TYPE s3, KEY_ID '{ACCESS_KEY}', SECRET '{SECRET_KEY}', URL_STYLE 'path', "
        f"ENDPOINT '127.0.0.1:{gateway.port}', USE_SSL false, REGION 'us-east-1')"
    )
    query = f"SELECT {columns} FROM delta_scan('{table}') ORDER BY ALL"
    done = subprocess.run(
        [sys.executable, "-c", _BY_DUCKDB, secret, query],
        env={"PYTHONPATH": str(fetched_packages(*_DUCKDB)), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[tuple[object, ...]] = ast.literal_eval(done.stdout)
    return found


def keys_and_values() -> list[tuple[object, ...]]:
    names = ("topic", "partition", "offset", "timestamp_ms", "key", "value")
    return [tuple(row[name] for name in names) for row in view_rows([SHOP])]


def test_runs_add_to_a_table_whose_path_has_either_scheme(
    environment: dict[str, str], gateway: Gateway, store: Store
) -> None:
    uri, folder = store.bucket()
    first = ingest(environment, f"{uri}/lake", "--topic", "orders")
    assert first[-2] == "read 3,186 offsets of 3 partitions"
    second = ingest(environment, f"{uri}/lake".replace("s3:", "s3a:"))
    assert second[-2] == "read 300 offsets of 1 partition"
    table = "lake/ingested_records"
    columns = 'topic, "partition", "offset", timestamp_ms, key, value'
    assert by_duckdb(gateway, columns, f"{uri}/{table}") == keys_and_values()
    assert [path.name for path in sorted((folder / table / "_delta_log").glob("*.json"))] == [
        f"{version:020}.json" for version in range(3)
    ]


def test_a_run_that_another_driver_has_overtaken_changes_nothing(
    environment: dict[str, str], gateway: Gateway, store: Store
) -> None:
    """F916, F530."""
    uri, folder = store.bucket()
    output = f"{uri}/lake"
    ingest(environment, output, "--topic", "orders")
    job = str(ROOT / "jobs" / "ingest_topics.py")
    other_run = (sys.executable, job, str(SHOP), "--output-dir", output)
    said = run(environment, "-c", _OVERTAKEN, str(SHOP), output, *other_run)
    assert (
        "another run has written meanwhile, this one has written nothing: run it again" in said[0]
    )
    assert said[1:] == ["[]", "3486"]
    columns = 'topic, "partition", "offset", timestamp_ms, key, value'
    assert by_duckdb(gateway, columns, f"{output}/ingested_records") == keys_and_values()
    # What the overtaken run had written is removed again.
    log = (folder / "lake" / "ingested_records" / "_delta_log").glob("*.json")
    actions = [json.loads(line) for path in log for line in path.read_text().splitlines()]
    stored = {path.name for path in (folder / "lake" / "ingested_records").glob("*.parquet")}
    assert stored == {each["add"]["path"] for each in actions if "add" in each}
