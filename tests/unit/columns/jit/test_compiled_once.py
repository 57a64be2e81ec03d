"""Each kernel is compiled for one combination of types, whatever is read."""

import json
import os
import subprocess
import sys

import pytest

from kafkalog.columns.jit.compiled import COMPILED
from tests.support.golden.fixture_sets import CONSUMERS
from tests.support.repository import ROOT, Unpack

# What Python code calls; other kernels are part of these.
CALLED = {
    "fill_rows",
    "first_mismatch",
    "gather_parts",
    "group_end",
    "check_rows",
    "bound_records",
    "place_payloads",
    "scan_batches",
    "scan_commits",
    "decide_all",
    "undecided_row",
    "_next_candidate",
    "_zero_run",
}


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_no_kernel_is_compiled_for_another_type_while_files_are_read(unpacked: Unpack) -> None:
    # A kernel called with, say, a Python int once and a numpy one later is compiled twice: the
    # second time within somebody's first read, for seconds.
    folders = [str(unpacked(f"{name}.logs")) for name in (*CONSUMERS, "unclean")]
    command = [sys.executable, "-m", "tests.unit.columns.kernel_signatures", *folders]
    environment = {**os.environ, "KAFKALOG_KERNELS": "compiled"}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    counts = json.loads(result.stdout)
    assert {name: counts["after"][name] for name in CALLED} == dict.fromkeys(CALLED, 1)
    assert counts["after"] == counts["before"]
