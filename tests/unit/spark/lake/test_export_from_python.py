"""`kafkalog.export` names its own parameters in errors, not options of jobs or of the source."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest

from kafkalog.errors import OptionError, StatePositionError
from kafkalog.spark.lake import export as module
from tests.support.repository import SHOP


def export(output: Path | None, **given: Any) -> list[Any]:
    place = None if output is None else str(output)
    return module.export(None, str(SHOP), place, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topics": "orderz"}, "topics: 'orderz'"),
        ({"topics": ["orders"], "topic_pattern": "o"}, "topics and topic_pattern: 'both'"),
        ({"topic_pattern": "("}, "topic_pattern: '('"),
        ({"isolation_level": "all"}, "isolation_level: 'all'"),
        ({"stop_at": "end"}, "stop_at: 'end'"),
        ({"mode": "LAX"}, "mode: 'LAX'"),
        ({"from_time": -5}, "from_time: -5 is not valid"),
        ({"until_time": True}, "until_time: True is not valid"),
        ({"from_time": 1.5}, "from_time: 1.5 is not valid"),
        (
            {"from_time": 5, "until_time": 3},
            "until_time: 3 is not valid, expected a time not before from_t",
        ),
        ({"full_refresh": True, "from_time": 5}, "full_refresh cannot be used with a start"),
        ({"format": "csv"}, "format: 'csv'"),
        ({"format": "parquet", "table": "a"}, "table: only with format"),
        ({"format": "iceberg", "catalog": "a"}, "leave it out with catalog: the"),
        ({"partition_by": ["day", "hour"]}, "partition_by day cannot be used with partition_by"),
        ({"partition_by": "week"}, "partition_by: 'week'"),
        ({"table": "a", "table_per_topic": True}, "table cannot be used with table_per_topic"),
        ({"compression": "lzo"}, "compression: 'lzo'"),
        ({"compression_level": 99}, "compression_level: 99"),
        ({"target_file_size": "1MiB"}, "target_file_size: '1MiB'"),
        ({"value_format": "xml"}, "value_format: 'xml' is not valid, expected one of"),
        ({"key_schema": "a"}, "key_schema: of no use"),
        ({"topik": "red"}, "topik: there is no such argument: did you mean topics"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_parameter(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(OptionError) as caught:
        export(tmp_path / "out", **given)
    assert message in str(caught.value)


def test_without_a_place_the_parameters_are_named() -> None:
    message = "output_dir: missing, expected a directory, or catalog for Iceberg tables"
    with pytest.raises(OptionError) as caught:
        export(None)
    assert str(caught.value) == message


def test_errors_of_planning_name_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any, **named: Any) -> Any:
        raise StatePositionError("written with --isolation-level x: give another --output-dir")

    monkeypatch.setattr(module, "local_exports", refused)
    said = "written with isolation_level x: give another output_dir"
    with pytest.raises(StatePositionError, match=said):
        export(tmp_path / "out")


@pytest.mark.parametrize(
    ("given", "topics"),
    [
        ({"topics": "orders", "partition_by": "day"}, {"orders"}),
        ({"stop_at": "logEnd"}, {"orders", "customers"}),
    ],
)
def test_a_text_is_one_value(given: dict[str, Any], topics: set[str], tmp_path: Path) -> None:
    assert {row.topic for row in export(tmp_path / "out", **given)} == topics


# The one value that the directory's maker left incomplete.
_BROKEN = b'{"order": 99999, "customer": "c-22", "am'
_WITHOUT_SPARK = """
import sys

sys.modules["pyspark"] = sys.modules["py4j"] = None
import kafkalog

(row,) = kafkalog.export(
    None, sys.argv[1], sys.argv[2], format="parquet", topics="orders", value_format="json",
    value_schema="order BIGINT", drop_decoded_bytes=True, dead_letters="broken",
)
print(row.topic, row.rows == row.offsets > 0)
"""


def test_without_a_session_nothing_needs_pyspark(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", _WITHOUT_SPARK, str(SHOP), str(tmp_path)]
    found = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "orders True\n")
    assert found.stderr == "1 value could not be decoded: column value_error has the reason\n"
    records, broken = (
        pads.dataset(tmp_path / name, format="parquet").to_table().to_pylist()
        for name in ("ingested_records", "broken")
    )
    assert [row["value"] for row in broken] == [_BROKEN]
    assert {row["value"] for row in records} == {None, _BROKEN}
    orders = [row["value_decoded"]["order"] for row in records if row["value"] is None]
    assert len(orders) == len(records) - 1 > 0
