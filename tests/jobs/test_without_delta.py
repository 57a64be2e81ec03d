"""Jobs that write Parquet or JSON need nothing of Delta's."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import SHOP

pytestmark = [pytest.mark.spark, pytest.mark.deep]

PROGRAM = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "delta":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
from kafkalog import run_job
from kafkalog.spark.session import job_session
logs, output = sys.argv[1:]
with job_session("without Delta", with_delta=False):
    for name, table_format, *more in (
        ("validate-checksums", "json"),
        ("ingest-topics", "parquet", "--topic", "orders"),
        ("reconstruct-state", "parquet", "--topic", "orders"),
        ("consumer-lag", "parquet"),
        ("ingest-topics", "delta", "--topic", "orders"),
    ):
        place = f"{output}/{name}-{table_format}"
        more += ["--output-dir", place, "--format", table_format, "--show", "0"]
        code = run_job(name, logs, *more)
        print("ended", name, table_format, int(code), flush=True)
"""


def test_other_formats_do_without_delta_and_delta_names_what_it_lacks(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(SHOP), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    ended = [line for line in run.stdout.splitlines() if line.startswith("ended")]
    assert ended == [
        "ended validate-checksums json 0",
        "ended ingest-topics parquet 0",
        "ended reconstruct-state parquet 0",
        "ended consumer-lag parquet 0",
        "ended ingest-topics delta 3",
    ], run.stderr
    missing = "error: this needs delta, which is not installed: pip install 'kafkalog[spark]'"
    assert missing in run.stderr.splitlines()
