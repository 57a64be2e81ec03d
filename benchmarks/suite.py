"""How long `make test` takes, in starts of a Spark session: `python -m benchmarks.suite`.

A machine that is twice as slow takes twice as long for both, so that the quotient carries over.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.measuring.report import machine

_ROUNDS = 3
_SESSION = """
from kafkalog.spark.session import job_session
with job_session("start", with_delta=True) as spark:
    spark.range(10).selectExpr("sum(id)").collect()
"""


def seconds(command: list[str]) -> float:
    """How long a command takes that has to succeed."""
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=sys.stderr)
    return time.monotonic() - start


def main() -> None:
    """Measure the session three times and the tests once."""
    session = statistics.median(seconds([sys.executable, "-c", _SESSION]) for _ in range(_ROUNDS))
    suite = seconds(["make", "test"])
    print(machine(["pyspark"], "all of them"))
    print(f"make test: {suite:.0f} s; a Spark session's start and first job: {session:.1f} s")
    print(f"quotient: {suite / session:.0f}")


if __name__ == "__main__":
    main()
