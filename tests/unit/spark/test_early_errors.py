"""`kafkalog.read` raises the error itself where that can be told without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.errors import KafkaLogError, LogDirError, OptionError
from kafkalog.spark.early_errors import refuse_early
from tests.conftest import ROOT

SHOP = str(ROOT / "examples" / "shop-week")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"subscribe": "none"}, OptionError, "what the log directories hold: __consumer_offsets"),
        ({"assign": '{"orders": [7]}'}, OptionError, "'orders-7'"),
        ({"mode": "SOMETIMES"}, OptionError, "option mode"),
        ({"columns": "valeu"}, OptionError, "columns of view records: key"),
        (
            {"view": "offset_commits", "subscribe": "orders"},
            OptionError,
            "offset_commits of orders",
        ),
    ],
    ids=str,
)
def test_what_options_and_names_tell_is_raised_as_it_is(
    given: dict[str, str], error: type[KafkaLogError], said: str
) -> None:
    with pytest.raises(error, match=said):
        refuse_early([SHOP], given)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match="no such file or directory"):
        refuse_early([str(tmp_path / "none")], {})


def test_what_can_be_read_and_what_lies_elsewhere_is_let_through() -> None:
    refuse_early([SHOP], {"subscribe": "orders"})
    refuse_early(["s3://bucket/logs"], {"subscribe": "orders"})
