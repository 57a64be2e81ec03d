"""What an export says that cannot count over Spark Connect. Rule: docs/erasure.md F1124."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalog.lake.written_file import no_report
from kafkalog.spark.lake import task_files


@pytest.mark.parametrize("suppression", [None, object()])
def test_counts_of_suppressed_records_are_called_unknown(
    suppression: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(task_files, "is_remote", lambda: True)
    plan: Any = SimpleNamespace(task=SimpleNamespace(suppression=suppression))
    session: Any = None
    with task_files.reported(session, plan) as report:
        assert report is no_report
    is_said = "it is not known here how many records --suppress left out" in capsys.readouterr().err
    assert is_said == (suppression is not None)
