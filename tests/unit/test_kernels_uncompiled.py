"""The kernels as ordinary Python functions, and as the command line loads them: the same tests of
the fast reader, run that way."""

import os
import subprocess
import sys

import pytest

from tests.support.repository import ROOT

PART = (
    "tests/unit/columns",
    "tests/property/test_any_bytes.py",
    "tests/property/test_forged_payloads.py",
    "tests/property/test_round_trip.py",
    "tests/golden/records/test_records_equal_consumer.py",
    "tests/golden/records/test_batches_equal_dump_log.py",
)
# Format 0 of kafka08 and format 2 of tiered43 are left; the larger sets take long this way.
FEW_SETS = ("-k", "not (golden and (kafka44 or kafka39zk or kafka010))")


def run_with_kernels(mode: str, profile: str, *arguments: str) -> str:
    """What pytest prints, once all tests have passed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfs",
        "--show-capture=no",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    settings = {"KAFKALOG_KERNELS": mode, "HYPOTHESIS_PROFILE": profile}
    result = subprocess.run(
        command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout


@pytest.mark.deep
def test_uncompiled_kernels_pass_the_tests_of_the_fast_reader() -> None:
    printed = run_with_kernels("plain", "quick", "-m", "not deep", *FEW_SETS, *PART)
    # It is skipped just there: so the kernels were not machine code.
    assert "nothing is compiled here" in printed


@pytest.mark.deep
def test_stored_kernels_pass_the_tests_of_the_fast_reader() -> None:
    printed = run_with_kernels("stored", "quick", "-m", "not deep", *FEW_SETS, *PART)
    assert "nothing is compiled here" not in printed
