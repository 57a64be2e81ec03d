"""Runs `kafkalog` in forks of this process, which has its modules and the library that it was
started with: a line of JSON comes in for each run, and one goes out that says how it ended."""

import json
import os
import sys

from kafkalog.command_line.main import kafkalog
from kafkalog.inspection.compile_kernels import compile_kernels
from tests.support.forks import Ended, in_a_fork


def _ended(arguments: list[str], settings: dict[str, str]) -> Ended:
    def run() -> None:
        os.environ.update(settings)
        kafkalog(arguments, prog_name="kafkalog")

    return in_a_fork(run)


if __name__ == "__main__":
    # Loads the kernels, for all runs.
    compile_kernels()
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(_ended(*json.loads(line)))}\n")
        sys.stdout.flush()
