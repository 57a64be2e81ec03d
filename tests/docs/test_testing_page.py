"""The example of docs/testing.md, as a user would have it: a file of tests of their own."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalog.testing import LogDirectory, Topic, TransactionalProducer
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text()


@pytest.mark.spark
def test_the_example_passes(spark: SparkSession, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)  # the project's own document
    tested: Callable[..., None] = names["test_what_was_aborted_is_not_paid"]
    tested(spark, LogDirectory(tmp_path / "kafka-logs"))


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
