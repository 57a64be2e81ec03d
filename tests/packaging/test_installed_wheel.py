"""The wheel in an environment that has what it asks for and nothing else, nor a source tree."""

import json
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from kafkalog import __version__
from kafkalog.spark.packing import libraries
from kafkalog.testing import LogDirectory


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, nothing of it downloaded: what the wheel requires, and
    what that requires, is linked to where it is installed already."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for project in sorted({*libraries(), "pyspark", "py4j"}):
        _link(project, site)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    install = ["install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    subprocess.run([*pip, "check"], check=True)
    return folder


def _link(project: str, site: Path) -> None:
    found = distribution(project)
    for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        if not (site / name).exists():
            (site / name).symlink_to(Path(str(found.locate_file(name))))


def run(environment: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment, elsewhere, with nothing of ours on its path."""
    program = [str(environment / "bin" / command[0]), *command[1:]]
    # Compiling the kernels again would take longer than running them as Python.
    # As activated: Spark's own Pythons are the first on the path.
    path = os.pathsep.join((str(environment / "bin"), os.environ["PATH"]))
    variables = {"PATH": path, "KAFKALOG_KERNELS": "plain"}
    return subprocess.run(
        program, env=variables, cwd=environment, capture_output=True, text=True, check=False
    )


def test_the_command_is_there(environment: Path) -> None:
    said = run(environment, "kafkalog", "--version")
    assert (said.stdout, said.returncode) == (f"kafkalog {__version__}\n", 0)


def test_what_spark_submit_needs_is_in_the_installation(environment: Path) -> None:
    said = run(environment, "kafkalog", "job", "--spark-submit", "consumer-lag", "DIR", "--x")
    option, settings, _, logging, job, *arguments = said.stdout.split()
    assert (option, arguments) == ("--properties-file", ["DIR", "--x"])
    assert Path(logging.rpartition("=")[2]).exists()
    (package,) = environment.glob("lib/python*/site-packages/kafkalog")
    assert Path(settings) == package / "conf" / "spark-defaults.conf"
    assert Path(job) == package / "jobs" / "consumer_lag.py"
    assert Path(settings).exists() and Path(job).exists()


def test_a_job_tells_its_own_arguments(environment: Path) -> None:
    said = run(environment, "kafkalog", "job", "validate-checksums", "--help")
    assert said.stdout.startswith("Usage: kafkalog job validate-checksums ")
    assert "\n    kafkalog job validate-checksums /var/lib/kafka/data --output-dir" in said.stdout
    wrong = run(environment, "kafkalog", "job", "validate-checksums", "DIR")
    assert wrong.returncode == 2
    assert "error: Missing option '--output-dir' (see kafkalog job" in wrong.stderr


def test_a_job_that_is_none_is_answered_with_those_that_there_are(environment: Path) -> None:
    said = run(environment, "kafkalog", "job", "validate")
    assert said.returncode == 2
    assert "validate-checksums" in said.stderr and "consumer-lag" in said.stderr


PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
log_dir, output = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.format("kafkalog").option("columns", "offset,value").load(log_dir).collect()
import kafkalog
from kafkalog.command_line.main import main
found = [[row.offset, row.value.decode()] for row in rows]
Path(output).write_text(json.dumps([kafkalog.__file__, found]))
sys.argv = ["kafkalog", "job", "validate-checksums", log_dir, "--output-dir", output + ".tables",
            "--format", "json", "--fail-on-findings"]
main()
"""


@pytest.mark.deep
@pytest.mark.spark
def test_spark_finds_the_source_by_itself_and_a_job_runs(environment: Path, tmp_path: Path) -> None:
    log_dir = LogDirectory(tmp_path / "kafka-logs")
    orders = log_dir.topic("orders", compression="lz4")
    orders.records([("a", "1"), ("b", "2")])
    found = tmp_path / "found.json"
    done = run(environment, "python", "-c", PROGRAM, log_dir.write(), str(found))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "sound: checked 1 segment of 1 partition" in done.stdout
    (package,) = environment.glob("lib/python*/site-packages/kafkalog")
    assert json.loads(found.read_text()) == [str(package / "__init__.py"), [[0, "1"], [1, "2"]]]
    assert list(Path(f"{found}.tables", "checksum_report").glob("*.json"))
