"""An error names an option as the command, the job or the Python function has it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import kafkalog
from kafkalog.errors import (
    ConflictingOptionsError,
    OptionError,
    RefusedOptionError,
    RepeatedOptionError,
    StatePositionError,
)
from kafkalog.views.options.option_names import first_named_as_given, named_as_parameters
from tests.support.repository import ROOT

LOG_DIR = str(ROOT / "examples" / "log-dirs" / "kafka-4.4")
PARAMETERS = ("topics", "topic_pattern", "until_time", "from_time", "full_refresh", "partition_by")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            OptionError(("subscribe", "subscribePattern"), "both", "one of them"),
            "topics and topic_pattern: 'both' is not valid, expected one of them",
        ),
        (
            OptionError("untilTimestamp", 5, "a time not before fromTimestamp", ("fromTimestamp",)),
            "until_time: 5 is not valid, expected a time not before from_time",
        ),
        (
            ConflictingOptionsError("--partition-by day", "--partition-by hour"),
            "partition_by day cannot be used with partition_by hour",
        ),
        (RepeatedOptionError("--topic"), "topics is given twice"),
        (
            RefusedOptionError("--topic", "leave it out with --topic-pattern, or with --format"),
            "topics: leave it out with topic_pattern, or with --format",
        ),
        (StatePositionError("the log was cut: --full-refresh, once"), None),
    ],
)
def test_python_names_its_parameters(error: Any, told: str | None) -> None:
    expected = told or "the log was cut: full_refresh, once"
    assert named_as_parameters(error, PARAMETERS) == expected
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), named_as_parameters(again, PARAMETERS)) == (str(error), expected)


def test_a_value_is_shown_as_it_was_given() -> None:
    error = OptionError("untilTimestamp", "fromTimestamp", "a time")
    told = named_as_parameters(error, PARAMETERS)
    assert told == "until_time: 'fromTimestamp' is not valid, expected a time"


def test_scan_names_its_own_arguments() -> None:
    with pytest.raises(OptionError) as refused:
        kafkalog.scan(LOG_DIR, from_time=2_000, until_time=1_000)
    assert str(refused.value).startswith("until_time: 1000 is not valid")
    assert str(refused.value).endswith("a time not before from_time")
    with pytest.raises(OptionError, match=r"^topics and subscribe_pattern: "):
        kafkalog.scan(LOG_DIR, topics="orders", subscribe_pattern="o.*")
    # What only the names of the files show.
    for topics in ("no.such", {"no.such": [0]}):
        with pytest.raises(OptionError, match=r"^topics: 'no.such"):
            kafkalog.scan(LOG_DIR, topics=topics)
        with pytest.raises(OptionError, match=r"^topics: 'no.such"):
            kafkalog.sql(LOG_DIR, topics=topics)


def test_an_error_of_another_process_has_the_name_at_its_beginning() -> None:
    from jobs.salvage import main

    said = "serverProperties: 'a: serverProperties' is not valid, expected a file"
    told = first_named_as_given(said, main)
    assert told == "--server-properties: 'a: serverProperties' is not valid, expected a file"
