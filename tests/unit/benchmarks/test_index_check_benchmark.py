from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import index_check
from tests.support.broker.class_paths import ClassPathError


def test_without_kafkas_tools_the_benchmark_measures_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(main_class: str, arguments: Sequence[str], **_: object) -> None:
        raise ClassPathError("not on the PATH, and needed to run Kafka: java")

    monkeypatch.setattr(index_check, "run_tool", missing)
    arguments = ["--sizes", "1", "--rounds", "1", "--inputs", str(tmp_path)]
    for _ in range(2):  # the second time with the files of the first
        assert index_check.main(arguments) == 0
        (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("|   1"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert int(cells[1]) > 400
        assert cells[4:] == ["-", "-", "-"]


def test_indexes_that_are_not_those_of_the_log_end_the_benchmark(tmp_path: Path) -> None:
    arguments = ["--sizes", "1", "--rounds", "1", "--inputs", str(tmp_path)]
    (tmp_path / "index-check-1").mkdir()
    for suffix in (".log", ".index", ".timeindex"):
        (tmp_path / "index-check-1" / f"{0:020d}{suffix}").write_bytes(b"\1" * 24)
    with pytest.raises(AssertionError, match=r"beyond_end|log_damaged"):
        index_check.main(arguments)
