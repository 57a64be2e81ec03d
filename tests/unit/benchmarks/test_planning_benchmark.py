from pathlib import Path

import pytest

from benchmarks import planning


def test_plans_of_a_small_tree_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--partitions", "10", "--segments", "3", "--rounds", "1"]
    for _ in range(2):  # the second time with the tree of the first
        assert planning.main([*arguments, "--inputs", str(tmp_path)]) == 0
        rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
        tasks = [row.strip("|").split("|")[2].strip() for row in rows[2:]]
        assert tasks == ["-", "30", "3", "10", "60"]
