"""The benchmark of planning reads of a store that only lists."""

import pytest

from benchmarks.listed_planning import main


def test_a_small_store_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--segments", "40", "--of-each", "5", "--partitions", "4"]) == 0
    told = capsys.readouterr().out
    assert "40 segments of 1 GiB in 8 partitions of 2 log directories" in told
    # 120 files of segments, 8 at the top, and the 2 directories.
    assert "of 130 objects" in told
