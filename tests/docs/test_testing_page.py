"""The example of docs/testing.md, as a user would have it: a file of tests of their own."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalog.testing import LogDirectory, Topic, TransactionalProducer
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text()
CONFTEST, PROGRAM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.spark
def test_the_example_passes(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(PROGRAM, names)  # the project's own document
    tested: Callable[..., None] = names["test_what_was_aborted_is_not_paid"]
    tested(spark, LogDirectory(tmp_path / "kafka-logs"))


@pytest.mark.deep
@pytest.mark.spark
def test_both_files_are_all_that_pytest_needs(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_payments.py").write_text(PROGRAM)
    given = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(given, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_every_call_has_a_row() -> None:
    calls = re.findall(r"^\| `(?:log_dir\.|topic\.)?([A-Za-z_]+)", PAGE, re.MULTILINE)
    public = {
        name
        for kind in (LogDirectory, Topic)
        for name, value in vars(kind).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    assert {"LogDirectory", *public} - set(calls) == {"write", "send", "log"}
    producer = {name for name in vars(TransactionalProducer) if not name.startswith("_")}
    assert [name for name in sorted(producer) if f"{name}(" not in PAGE] == []
