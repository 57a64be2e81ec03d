"""A program run by an environment's Python, where `python3` is another one without libraries."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalog.spark.frames import use_this_python
from tests.support.logs.samples import batch
from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import write_log

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import kafkalog
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(kafkalog.read(spark, sys.argv[1]).count())
print(spark.read.format("kafkalog").load(sys.argv[1]).count())
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables with which `python3` is a Python that has only the standard library."""
    bare = tmp_path / "bin" / "python3"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec {sys._base_executable} -S "$@"\n')  # type: ignore[attr-defined]
    bare.chmod(0o755)
    variables = {name: text for name, text in os.environ.items() if "PYSPARK" not in name}
    path = os.pathsep.join([str(bare.parent), os.environ["PATH"]])
    return {**variables, "PATH": path, "PYTHONPATH": str(ROOT)}


@pytest.mark.deep
def test_reads_run_the_python_that_runs_the_program(
    environment: dict[str, str], tmp_path: Path
) -> None:
    write_log(tmp_path / "logs", "orders-0", {0: [batch(0)]})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "logs")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("3\n3\n", 0), done.stderr


@pytest.mark.deep
def test_a_python_without_the_libraries_is_an_error_that_says_what_to_set(
    environment: dict[str, str],
) -> None:
    done = subprocess.run(
        ["python3", "-c", "import kafkalog.spark"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: Spark runs ")
    assert "lacks crc32c, numpy, pyarrow: set PYSPARK_PYTHON to a Python with kafkalog" in said


def session(master: str = "local[*]", python: str = "python3", **conf: str) -> Any:
    settings = SimpleNamespace(contains=conf.__contains__)
    context = SimpleNamespace(master=master, pythonExec=python, getConf=lambda: settings)
    return SimpleNamespace(sparkContext=context)


def test_a_session_on_one_machine_gets_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    local = session()
    use_this_python(local)
    assert local.sparkContext.pythonExec == sys.executable


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        (session(), {"PYSPARK_PYTHON": "python3"}),
        (session(python="/opt/python"), {}),
        (session(**{"spark.pyspark.python": "python3"}), {}),
        (session("yarn"), {}),
        (session("spark://host:7077"), {}),
    ],
    ids=["by variable", "by hand", "by setting", "yarn", "standalone"],
)
def test_a_python_that_the_user_chose_and_those_of_clusters_stay(
    given: Any, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    before = given.sparkContext.pythonExec
    use_this_python(given)
    assert given.sparkContext.pythonExec == before
