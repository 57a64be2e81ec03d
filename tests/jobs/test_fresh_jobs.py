"""A job in a process of its own, in an empty directory: what it leaves there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.jobs.job_runs import DAMAGED, needs_delta
from tests.support.repository import ROOT, delta_jars

pytestmark = pytest.mark.deep


def run_fresh(
    job: str, *arguments: str, work: Path, submit: str
) -> subprocess.CompletedProcess[str]:
    """A job as an operator starts it, `work` being the current directory."""
    environment = {
        **{name: value for name, value in os.environ.items() if "PYSPARK" not in name},
        "PYSPARK_SUBMIT_ARGS": f"{submit} --conf spark.ui.enabled=false pyspark-shell",
    }
    command = [sys.executable, str(ROOT / "jobs" / f"{job}.py"), *arguments]
    return subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, check=False
    )


@needs_delta
def test_a_job_leaves_nothing_but_its_tables_in_the_current_directory(tmp_path: Path) -> None:
    jars = ",".join(map(str, delta_jars()))
    shop = str(ROOT / "examples" / "shop-week")
    done = run_fresh(
        *("ingest_topics", shop, "--output-dir", "lake/shop", "--topic", "customers"),
        work=tmp_path,
        submit=f"--jars {jars}",
    )
    assert done.returncode == ExitCode.DONE, done.stderr
    tables = tmp_path / "lake" / "shop"
    assert os.listdir(tmp_path) == ["lake"]
    assert sorted(os.listdir(tables)) == ["ingest_manifest", "ingested_records"]
    assert f"tables: {tables / 'ingested_records'} {tables / 'ingest_manifest'}" in done.stdout


@needs_delta
def test_a_table_that_would_end_with_the_job_is_refused(tmp_path: Path) -> None:
    # F1345: the session's catalog is in memory. With a directory of tables that stays, the rows
    # stay too, and it is written.
    jars = ",".join(map(str, delta_jars()))
    shop = str(ROOT / "examples" / "shop-week")
    given = ("ingest_topics", shop, "--output-dir", "lake", "--topic", "customers")
    lost = run_fresh(*given, "--table", "customers", work=tmp_path, submit=f"--jars {jars}")
    assert lost.returncode == ExitCode.WRONG_ARGUMENTS
    assert "--table: the session's catalog would forget customers" in lost.stderr
    assert not (tmp_path / "lake").exists()
    kept = tmp_path / "warehouse"
    submit = f"--jars {jars} --conf spark.sql.warehouse.dir={kept}"
    done = run_fresh(*given, "--table", "customers", work=tmp_path, submit=submit)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert (kept / "customers" / "_delta_log").is_dir()


def test_the_first_job_keeps_sparks_classes_and_the_next_starts_from_them(tmp_path: Path) -> None:
    job = (
        "import sys, kafkalog.spark.class_archive as archive; from pathlib import Path; "
        f"archive._candidates = lambda: [Path({str(tmp_path / 'kept')!r})]; "
        "from jobs.plan_recovery import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    arguments = [str(DAMAGED), "--output-dir", str(tmp_path / "out"), "--format", "json"]
    outputs = []
    for is_first in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", job, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == ExitCode.DONE, done.stderr
        assert ("keeping Spark's classes" in done.stderr) is is_first
        (kept,) = (tmp_path / "kept").iterdir()
        assert kept.stat().st_size > 10_000_000
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


# Asks Maven's repository.
def test_a_job_that_fetches_jars_says_so_in_one_line_and_nothing_when_they_are_there(
    tmp_path: Path,
) -> None:
    shop = str(ROOT / "examples" / "shop-week")
    found = "found 14 segments of 5 partitions, 367,870 bytes"
    for told in ([found, "fetching Delta's jars, once"], [found]):
        done = run_fresh(
            *("validate_checksums", shop, "--output-dir", "checked"),
            work=tmp_path,
            submit=f"--conf spark.jars.ivy={tmp_path / 'ivy'}",
        )
        assert done.returncode == ExitCode.DONE, done.stderr
        assert said_by_jobs(done.stderr) == told
        assert "sound: checked 14 segments" in done.stdout


def test_a_job_that_cannot_fetch_jars_says_why(tmp_path: Path) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        f'<filesystem name="none"><artifact pattern="{tmp_path}/[artifact].jar"/></filesystem>'
        "</resolvers></ivysettings>"
    )
    submit = f"--conf spark.jars.ivy={tmp_path / 'ivy'} --conf spark.jars.ivySettings={settings}"
    shop = str(ROOT / "examples" / "shop-week")
    done = run_fresh(
        "validate_checksums", shop, "--output-dir", "out", work=tmp_path, submit=submit
    )
    assert done.returncode == ExitCode.UNREADABLE_INPUT
    assert "io.delta#delta-spark_4.2_2.13;4.4.0: not found" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: [JAVA_GATEWAY_EXITED]")


def test_an_error_in_a_task_is_reported_without_pages_of_traces(tmp_path: Path) -> None:
    arguments = ["--output-dir", "out", "--format", "json"]
    done = run_fresh("reconstruct_state", str(DAMAGED), *arguments, work=tmp_path, submit="")
    assert done.returncode == ExitCode.UNREADABLE_INPUT
    assert "\n  File " not in done.stderr and "\n\tat " not in done.stderr
    lines = said_by_jobs(done.stderr)
    assert len(lines) < 12, done.stderr
    assert lines[-1].startswith(f"error: {DAMAGED}") and "position" in lines[-1]


def said_by_jobs(stderr: str) -> list[str]:
    """What is on stderr but for what any Java says of a module that Spark has it load."""
    return [line for line in stderr.splitlines() if not line.startswith("WARNING: Using incubator")]


@pytest.mark.parametrize("compiles_less", [True, False])
def test_a_session_can_compile_less(tmp_path: Path, *, compiles_less: bool) -> None:
    program = f"""
from kafkalog.spark.session import job_session
with job_session("test", with_delta=False, compiles_less={compiles_less}) as spark:
    management = spark._jvm.java.lang.management.ManagementFactory
    print(list(management.getRuntimeMXBean().getInputArguments()))
    print(spark.conf.get("spark.sql.codegen.wholeStage"))
"""
    # Those of the tests' own session.
    own = ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    arguments, makes_stages = done.stdout.splitlines()[-2:]
    assert ("-XX:TieredStopAtLevel=1" in arguments) is compiles_less
    assert makes_stages == str(not compiles_less).lower()
