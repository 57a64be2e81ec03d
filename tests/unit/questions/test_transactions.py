"""The transactions of a log as of a time, by what coordinators knew then. Rule: F216."""

from typing import Any

import pytest

from kafkalog.questions.transactions import Transactions, TransactionSettings, transactions
from tests.support.made_views import MadeViews

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
LOG = {"cluster_id": "c", "input_path": "/logs", "topic": "orders", "partition": 0}
OPEN = {**LOG, "producer_id": 7, "outcome": "open", "last_timestamp_ms": NOW_MS - 9 * HOUR_MS}


def state(offset: int, said: str, written_ms: int, *, takes_part: bool) -> dict[str, Any]:
    partitions = [{"topic": "orders", "partitions": [0]}] if takes_part else []
    return {
        "cluster_id": "c",
        "transactional_id": "billing",
        "producer_id": 7,
        "state": said,
        "record_offset": offset,
        "record_timestamp_ms": written_ms,
        "partitions": partitions,
        "started_ms": NOW_MS - 9 * HOUR_MS if takes_part else None,
        "is_tombstone": False,
    }


ONGOING = state(0, "Ongoing", NOW_MS - 9 * HOUR_MS, takes_part=True)
COMPLETE = state(1, "CompleteAbort", NOW_MS - HOUR_MS, takes_part=False)


def asked(as_of_ms: int | None, *states: dict[str, Any], is_whole: bool = True) -> Transactions:
    ended = {**OPEN, "producer_id": 8, "outcome": "committed"}
    views = MadeViews(transactions=[[OPEN, ended, ended]], transaction_states=[states])
    return transactions(views, TransactionSettings(NOW_MS, as_of_ms, has_ended_rows=is_whole))


@pytest.mark.parametrize(
    ("as_of_ms", "states", "outcome", "reason"),
    [
        (None, [ONGOING], "open", "known"),
        (None, [ONGOING, COMPLETE], "hanging", "not_in_transaction"),
        # Its coordinator ended it later than this time.
        (NOW_MS - 2 * HOUR_MS, [ONGOING, COMPLETE], "open", "known"),
        # The cleaner has removed what the coordinator knew then.
        (NOW_MS - 2 * HOUR_MS, [COMPLETE], "open", "unknown"),
        (NOW_MS - 2 * HOUR_MS, [], "hanging", "no_transactional_id"),
    ],
)
def test_a_transaction_is_judged_by_what_was_known_at_the_time(
    as_of_ms: int | None, states: list[dict[str, Any]], outcome: str, reason: str
) -> None:
    (row,) = asked(as_of_ms, *states).open()
    assert (row["outcome"], row["reason"]) == (outcome, reason)


def test_what_has_ended_since_is_not_called_hanging_for_what_the_cleaner_removed() -> None:
    # F1322: with no record of its coordinator left.
    ended_since = {**OPEN, "marker_offset": 20}
    views = MadeViews(transactions=[[ended_since]], transaction_states=[[]])
    settings = TransactionSettings(NOW_MS, NOW_MS - 2 * HOUR_MS)
    (row,) = transactions(views, settings).open()
    assert (row["outcome"], row["reason"]) == ("open", "unknown")


def test_those_that_have_ended_are_counted_or_listed() -> None:
    whole, counted = asked(None, ONGOING), asked(None, ONGOING, is_whole=False)
    expected = {("orders", "open"): 1, ("orders", "committed"): 2}
    assert whole.outcomes == counted.outcomes == expected
    assert whole.totals == {"open": 1, "committed": 2}
    assert len([*whole.report]) == 3
    assert [*counted.report] == whole.open() == counted.open()
    assert not whole.has_findings
