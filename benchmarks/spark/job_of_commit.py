"""Runs a job of the project's files at some commit: `job_of_commit.py PROJECT JOB LOG_DIR`.

Run by its path, so that no other `kafkalog` is imported. Its last line is what
`benchmarks/measuring/processes.py` measures of a process, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from typing import Any


def main(project: str, job: str, log_dir: str) -> None:
    """Run the job in a session whose start is not measured, and print rows, seconds and processor
    seconds. Raises ValueError where the job fails."""
    sys.path[0] = os.environ["PYTHONPATH"] = project
    # Workers look there first.
    os.chdir(project)
    busy_seconds = _processes().busy_seconds
    run = import_module(f"jobs.{job}").main
    job_session = import_module("kafkalog.spark.session").job_session
    # Earlier commits named it differently.
    is_new = "--output-dir" in Path(project, "README.md").read_text(encoding="utf-8")
    option = "--output-dir" if is_new else "--output"
    # As the job itself would start it for these files.
    parameters = signature(job_session).parameters
    own = {"compiles_less": True} if "compiles_less" in parameters else {}
    with (
        job_session("lag", with_delta=False, **own) as spark,
        tempfile.TemporaryDirectory() as output,
    ):
        spark.range(1).collect()
        started, busy = time.perf_counter(), busy_seconds()
        code = run([log_dir, option, output, "--format", "parquet", "--show", "0"])
        seconds, busy = time.perf_counter() - started, busy_seconds() - busy
        rows = spark.read.parquet(f"{output}/{job}").count()
    if code:
        raise ValueError(f"the job ended with {code}")
    print(json.dumps([rows, seconds, busy]))


def _processes() -> Any:
    """The module beside these benchmarks, not that of the commit."""
    path = Path(__file__).parents[1] / "measuring" / "processes.py"
    spec = spec_from_file_location("processes", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(*sys.argv[1:])
