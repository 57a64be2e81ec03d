"""Every command over directories in which anything is wrong: it ends with an exit code, without a
trace, in bounded time and memory, and leaves its input as it was.

`python -m tests.property.mutated SEED` runs a seed again.
"""

import os
import random
import subprocess
import sys

import pytest

from tests.support.repository import ROOT

# Of a million, so that the seeds of two runs seldom are the same.
_FIRST = random.SystemRandom().randrange(10**6) * 1000


def run_seeds(first: int, end: int, **settings: str) -> None:
    command = [sys.executable, "-m", "tests.property.mutated", str(first), str(end)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    again = "python -m tests.property.mutated SEED"
    last = done.stderr[-3000:].replace("\r", "\n")
    assert done.returncode == 0, f"{settings}, {again}\n{done.stdout[-5000:]}\n{last}"


def test_commands_read_any_directory() -> None:
    run_seeds(0, 200, KAFKALOG_KERNELS="stored")


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("thousand", range(17))
def test_commands_read_any_directory_of_thousands(thousand: int) -> None:
    first = _FIRST + 1000 * thousand
    run_seeds(first, first + 1000, KAFKALOG_KERNELS="stored")


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("thousand", range(17, 20))
def test_no_kernel_reads_or_writes_beyond_an_array(thousand: int) -> None:
    first = _FIRST + 1000 * thousand
    run_seeds(first, first + 1000, KAFKALOG_KERNELS="compiled", NUMBA_BOUNDSCHECK="1")
