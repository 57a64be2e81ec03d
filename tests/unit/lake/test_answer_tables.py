"""The tables of an answer as files, and what is refused before the work."""

import csv
import json
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkalog.columns.table_rows import table_batch
from kafkalog.errors import KafkaLogError, OptionError, RefusedOptionError
from kafkalog.lake.formats.answer_tables import AnswerTables

TABLE = "compaction_findings"


def rows(*keys: bytes, path: str = "/in") -> pa.Table:
    found = [{"input_path": path, "topic": "t", "partition": 0, "key": key} for key in keys]
    return pa.Table.from_batches([table_batch(TABLE, found, {})])


def files(path: Path, ending: str) -> list[Path]:
    return sorted((path / TABLE).glob(f"*.{ending}"))


def test_a_run_replaces_the_rows_of_its_inputs(tmp_path: Path) -> None:
    tables = AnswerTables(str(tmp_path), "parquet", ["/in"])
    for keys in ((b"a", b"b"), (b"c",), ()):
        path = tables.replace(TABLE, rows(*keys))
        assert path == str(tmp_path / TABLE)
        (file,) = files(tmp_path, "parquet")
        assert parquet.read_table(file).column("key").to_pylist() == list(keys)
        assert (tmp_path / TABLE / "_SUCCESS").exists()
        assert [each.name for each in tmp_path.iterdir()] == [TABLE]


@pytest.mark.parametrize("table_format", ["parquet", "json", "csv"])
def test_rows_of_other_inputs_stay(table_format: str, tmp_path: Path) -> None:
    AnswerTables(str(tmp_path), table_format, ["/in"]).replace(TABLE, rows(b"a"))
    other = AnswerTables(str(tmp_path), table_format, ["/other"])
    with pytest.raises(KafkaLogError, match="holds rows of /in"):
        other.refuse([TABLE], [])
    with pytest.raises(KafkaLogError, match="holds rows of /in"):
        other.replace(TABLE, rows(b"b", path="/other"))
    AnswerTables(str(tmp_path), table_format, ["/other", "/in"]).refuse([TABLE], [])


def test_bytes_are_base64_in_texts(tmp_path: Path) -> None:
    key = b'\xff"\n'
    AnswerTables(str(tmp_path / "j"), "json", ["/in"]).replace(TABLE, rows(key))
    AnswerTables(str(tmp_path / "c"), "csv", ["/in"]).replace(TABLE, rows(key))
    (file,) = files(tmp_path / "j", "json")
    assert json.loads(file.read_text())["key"] == b64encode(key).decode()
    (file,) = files(tmp_path / "c", "csv")
    (row,) = csv.DictReader(file.read_text().splitlines())
    assert (row["key"], row["topic"]) == (b64encode(key).decode(), "t")


def test_what_is_not_a_table_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / TABLE).mkdir()
    (tmp_path / TABLE / "notes.txt").write_text("mine")
    tables = AnswerTables(str(tmp_path), "parquet", ["/in"])
    with pytest.raises(KafkaLogError, match="is not a table compaction_findings in parquet"):
        tables.replace(TABLE, rows(b"a"))
    assert (tmp_path / TABLE / "notes.txt").read_text() == "mine"


def test_a_table_of_another_format_is_refused(tmp_path: Path) -> None:
    AnswerTables(str(tmp_path), "json", ["/in"]).replace(TABLE, rows(b"a"))
    with pytest.raises(RefusedOptionError, match="is a table in format json"):
        AnswerTables(str(tmp_path), "parquet", ["/in"]).refuse([TABLE], [])


def test_an_input_is_no_place_for_tables(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--output-dir"):
        AnswerTables(str(tmp_path / "out"), "csv", ["/in"]).refuse([TABLE], [str(tmp_path)])


def test_a_failed_write_leaves_the_older_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = AnswerTables(str(tmp_path), "csv", ["/in"])
    tables.replace(TABLE, rows(b"a"))
    before = files(tmp_path, "csv")

    def no_space(_: pa.Table) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kafkalog.lake.formats.answer_tables.csv_lines", no_space)
    with pytest.raises(OSError, match="No space"):
        tables.replace(TABLE, rows(b"b"))
    assert files(tmp_path, "csv") == before
    assert [each.name for each in tmp_path.iterdir()] == [TABLE]
