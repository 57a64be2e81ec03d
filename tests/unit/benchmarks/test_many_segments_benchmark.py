from pathlib import Path

import pytest

from benchmarks import many_segments


@pytest.mark.deep
def test_commands_over_a_few_segments_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert many_segments.main(["--segments", "30", "--inputs", str(tmp_path)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    names = [row.strip("|").split("|")[0].strip() for row in rows[2:]]
    assert names[0] == "os.scandir and stat"
    assert names[-1] == "kafkalog dump --output /dev/null"
    assert len(names) == 9
    assert len(list((tmp_path / "segments-30" / "orders-0").glob("*.log"))) == 30
