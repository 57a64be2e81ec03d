"""Sentences about coordinators. Rules: docs/format.md F1000 to F1008."""

from dataclasses import replace

import pytest

from kafkalog.inspection.groups.coordinator_loading import (
    Consequence,
    CoordinatorLoad,
    SkippedRecord,
)
from kafkalog.questions.groups.coordinators import load_words

_STOPPED = CoordinatorLoad(
    *("__consumer_offsets", 3, "/d"),
    loads=False,
    offset=17,
    record_name="OffsetCommit",
    reason="it is cut",
)


def test_nothing_is_said_of_a_coordinator_that_loads() -> None:
    load = CoordinatorLoad("__consumer_offsets", 0, "/d/__consumer_offsets-0")
    assert load_words(load, "4.4") == []
    assert not load.is_finding


@pytest.mark.parametrize(
    ("topic", "consequence", "waiting", "words"),
    [
        (
            *("__consumer_offsets", Consequence.WAIT, 2),
            "2 groups have no coordinator until another version starts or the record is removed",
        ),
        (
            *("__consumer_offsets", Consequence.EMPTY, 1),
            "the broker answers as if there were no groups: 1 group has no commits there, and "
            "consumers begin where auto.offset.reset says",
        ),
        (
            *("__transaction_state", Consequence.PARTIAL, 3),
            "the broker goes on with what was before this record: 3 transactional ids have an "
            "older state or none, and open transactions of theirs may never end",
        ),
    ],
)
def test_the_consequence_is_named(
    topic: str, consequence: Consequence, waiting: int, words: str
) -> None:
    load = replace(_STOPPED, topic=topic, consequence=consequence, waiting=waiting)
    (sentence,) = load_words(load, "4.4")
    assert f"does not load {topic}-3: record OffsetCommit at offset 17: it is cut; " in sentence
    assert sentence.endswith(words)
    assert load.is_finding


def test_what_is_passed_over_and_what_is_not_served_is_named() -> None:
    load = CoordinatorLoad(
        *("__consumer_offsets", 0, "/d"),
        skipped=[SkippedRecord(5, "Kafka 3.9 does not know records of type 5")],
        skipped_records=2,
        unserved=["g2"],
        damage="a wrong checksum",
    )
    unserved, skipped, damage = load_words(load, "3.9")
    assert "removes g2" in unserved
    assert "passes over 2 records of __consumer_offsets-0, the first at offset 5" in skipped
    assert damage.endswith("a wrong checksum")
