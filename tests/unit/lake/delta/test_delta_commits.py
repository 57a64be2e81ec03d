"""Commits of Delta without Java: what is refused leaves the table as it was."""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafkalog.columns.table_rows import table_batch
from kafkalog.errors import KafkaLogError, StatePositionError
from kafkalog.extras import MissingExtraError
from kafkalog.lake.delta.delta_commits import DeltaLog
from kafkalog.lake.formats.answer_tables import AnswerTables
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.manifest_rows import TABLE
from kafkalog.lake.table_writer import written_rows
from kafkalog.lake.written_file import WrittenFile
from kafkalog.schemas import table_json

SCHEMA: dict[str, Any] = json.loads(table_json(TABLE))
# As job ingest-topics creates tables; and a feature that asks for more.
CLUSTERED = ["domainMetadata", "clustering", "invariants", "appendOnly"]


def files(path: Path) -> list[WrittenFile]:
    rows = table_batch(TABLE, [{"topic": "t", "partition": 1}], {})
    return written_rows(TableOutput(str(path), 1), TABLE, [rows])


def created(path: Path, features: list[str] | None = None) -> DeltaLog:
    log = DeltaLog(str(path))
    log.create(SCHEMA, user_metadata="first")
    if features is not None:
        commit = path / "_delta_log" / f"{0:020d}.json"
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        actions = [{"protocol": protocol} if "protocol" in each else each for each in actions]
        commit.write_text("\n".join(map(json.dumps, actions)))
    return DeltaLog(str(path))


@pytest.mark.parametrize("features", [None, CLUSTERED])
def test_of_two_runs_with_one_number_the_second_changes_nothing(
    features: list[str] | None, tmp_path: Path
) -> None:
    one, other = created(tmp_path, features), DeltaLog(str(tmp_path))
    one.append(files(tmp_path), writer="w", version=1, user_metadata="text")
    for late in (other, DeltaLog(str(tmp_path))):
        with pytest.raises(StatePositionError, match="another run has written meanwhile"):
            late.append(files(tmp_path), writer="w", version=1, user_metadata="late")
    found = DeltaTable(tmp_path)
    assert (found.version(), found.transaction_version("w")) == (1, 1)
    assert found.history(1)[0]["userMetadata"] == "text"
    assert found.to_pyarrow_table().num_rows == 1
    logged = sorted(path.name for path in (tmp_path / "_delta_log").iterdir())
    assert logged == [f"{number:020d}.json" for number in (0, 1)]
    DeltaLog(str(tmp_path)).append(files(tmp_path), writer="w", version=2, user_metadata=None)
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2


def test_a_table_that_is_there_is_not_created_again(tmp_path: Path) -> None:
    before = DeltaLog(str(tmp_path))
    created(tmp_path)
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        before.create(SCHEMA)


@pytest.mark.parametrize("feature", ["rowTracking", "inCommitTimestamp"])
def test_a_table_with_a_feature_that_is_not_known_is_left_to_the_job(
    feature: str, tmp_path: Path
) -> None:
    # F1140
    log = created(tmp_path, [*CLUSTERED, feature])
    with pytest.raises(KafkaLogError, match=f"{feature}.* `kafkalog job ingest-topics` does"):
        log.append(files(tmp_path), writer="w", version=1, user_metadata=None)
    assert DeltaTable(tmp_path).version() == 0


def test_rows_of_other_inputs_stay(tmp_path: Path) -> None:
    for path, keys in (("/in", "ab"), ("/it's", "c"), ("/in", "d"), ("/it's", "")):
        rows = [{"input_path": path, "key": key.encode()} for key in keys]
        batch = table_batch("compaction_findings", rows, {})
        tables = AnswerTables(str(tmp_path), "delta", [path])
        tables.refuse(["compaction_findings"], [])
        tables.replace("compaction_findings", pa.Table.from_batches([batch]))
    found = DeltaTable(tmp_path / "compaction_findings").to_pyarrow_table()
    assert found.column("key").to_pylist() == [b"d"]


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingExtraError, match=r"kafkalog\[deltalake\]"):
        DeltaLog(str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"kafkalog\[deltalake\]"):
        AnswerTables(str(tmp_path), "delta", ["/in"]).refuse([], [])
