"""How transactions end that are open at the cut: F1048 and F1049. The states are those of a real
coordinator in both versions of the protocol; KIP-890 gives each transaction of the second an epoch
of its own."""

from typing import NamedTuple

import pytest

from kafkalog.messages.internal_records import read_internal_record
from kafkalog.messages.record_writer import write_record_key, write_record_value
from kafkalog.questions.restore.coordinator_records import CoordinatorRecord, complete_from
from kafkalog.questions.restore.partitions.partition_plans import (
    Marker,
    OpenTransaction,
    PartitionPlan,
)
from kafkalog.questions.restore.transactions import (
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    Transactions,
    decided_after,
    incomplete_commits,
    known_markers,
    state_values,
    transactional_ids,
)

TOPIC = "__transaction_state"
KEY = write_record_key(TOPIC, 0, {"transactionalId": "writer"}) or b""
PRODUCER, MOMENT_MS = 7, 1_000_000


OPEN = OpenTransaction(PRODUCER, 3, 2, MOMENT_MS - 800)


class State(NamedTuple):
    """A record of the coordinator, `at_ms` after the moment."""

    status: int
    epoch: int
    at_ms: int
    version: int = 0
    partitions: tuple[int, ...] = (0,)


def records(*states: State) -> list[CoordinatorRecord]:
    found = []
    for offset, state in enumerate(states):
        values = {
            "producerId": PRODUCER,
            "producerEpoch": state.epoch,
            "transactionTimeoutMs": 60_000,
            "transactionStatus": state.status,
            "transactionPartitions": [{"topic": "t", "partitionIds": list(state.partitions)}],
            "transactionLastUpdateTimestampMs": MOMENT_MS + state.at_ms,
            "transactionStartTimestampMs": MOMENT_MS + state.at_ms,
        }
        if state.version:
            values["clientTransactionVersion"] = state.version
        value = write_record_value(TOPIC, 0, 1, values)
        found.append(CoordinatorRecord(offset, MOMENT_MS + state.at_ms, KEY, value))
    return found


def known(*states: State, markers: dict[tuple[int, int], bool] | None = None) -> Transactions:
    listed = records(*states)
    cut = next((each.offset for each in listed if each.time_ms > MOMENT_MS), len(listed))
    return Transactions(transactional_ids({0: listed}, {0: cut}), 5, markers or {})


def plan(covered_ms: int = MOMENT_MS + 60_000) -> PartitionPlan:
    return PartitionPlan("t", 0, "id", "/copies/t-0", 0, 10, 20, covered_ms)


@pytest.mark.parametrize(
    ("states", "epoch", "first_ms", "is_commit"),
    [
        # The first version: the next transaction has the same epoch, and begins after the decision.
        ((State(ONGOING, 3, -900),), 3, -800, False),
        ((State(PREPARE_COMMIT, 3, -500),), 3, -800, True),
        ((State(PREPARE_COMMIT, 3, -500),), 3, -200, False),
        ((State(COMPLETE_COMMIT, 3, -500),), 3, -800, False),
        # The second: its markers have the next epoch.
        ((State(PREPARE_COMMIT, 4, -500, 2),), 3, -800, True),
        ((State(PREPARE_COMMIT, 4, -500, 2),), 4, -400, False),
        ((State(COMPLETE_COMMIT, 4, -500, 2),), 3, -800, True),
        ((State(COMPLETE_COMMIT, 4, -500, 2),), 4, -400, False),
        # What was decided after the moment counts for nothing.
        ((State(ONGOING, 3, -900), State(PREPARE_COMMIT, 3, 100)), 3, -800, False),
        ((State(PREPARE_COMMIT, 3, 100),), 3, -800, False),
    ],
)
def test_the_decision_of_the_coordinator_counts(
    states: tuple[State, ...], epoch: int, first_ms: int, is_commit: bool
) -> None:
    found = OpenTransaction(PRODUCER, epoch, 2, MOMENT_MS + first_ms)
    ending, said = known(*states).ending(plan(), found, is_covered=True)
    assert ending.is_commit is said.is_commit is is_commit
    assert ending.coordinator_epoch == 5
    assert ending.producer_epoch > epoch or ending.producer_epoch > states[-1].epoch


def test_a_state_that_was_compacted_away_is_a_guess() -> None:
    found = OpenTransaction(PRODUCER, 3, 2, MOMENT_MS - 800)
    _, said = known(State(COMPLETE_COMMIT, 3, 400)).ending(plan(), found, is_covered=True)
    assert said.is_guess
    _, said = known(State(ONGOING, 3, -900)).ending(plan(), found, is_covered=True)
    assert not said.is_guess


def test_a_transaction_that_goes_on_after_the_moment_was_ongoing_at_it() -> None:
    """The record between them is one that the cleaner has removed: of another id, or a later state.
    A transaction has one start, in all of its states."""
    listed = records(State(ONGOING, 3, -900), State(ONGOING, 3, -500), State(PREPARE_COMMIT, 3, 9))
    first, _, decided = listed

    def is_guess(later: CoordinatorRecord) -> bool:
        found = transactional_ids({0: [first, later]}, {0: 2})
        _, said = Transactions(found, 5, {}).ending(plan(), OPEN, is_covered=True)
        return said.is_guess

    assert is_guess(decided)
    value = read_internal_record(TOPIC, KEY, decided.value).value or {}
    start_ms = {"transactionStartTimestampMs": MOMENT_MS - 900}
    written = write_record_value(TOPIC, 0, 1, {**value, **start_ms})
    assert not is_guess(decided._replace(value=written))


def test_a_marker_in_another_partition_decides() -> None:
    found = OpenTransaction(PRODUCER, 3, 2, MOMENT_MS - 800)
    other = plan()
    other.markers = (Marker(PRODUCER, 4, 9, MOMENT_MS - 10, is_commit=True),)
    markers = known_markers([other])
    ending, _ = known(State(ONGOING, 3, -900), markers=markers).ending(
        plan(), found, is_covered=True
    )
    assert ending.is_commit


def test_a_hanging_transaction_is_aborted() -> None:
    found = OpenTransaction(99, 3, 2, MOMENT_MS - 800)
    ending, said = known().ending(plan(), found, is_covered=True)
    assert not ending.is_commit
    assert ending.producer_epoch == 4
    assert said.transactional_id is None


def test_a_marker_for_a_decision_after_the_moment_moves_the_cut() -> None:
    each = plan()
    each.markers = (Marker(PRODUCER, 3, 8, MOMENT_MS - 1, is_commit=True),)
    ids = known(State(ONGOING, 3, -900)).ids.values()
    assert decided_after(ids, [each]) == {("t", 0): 8}
    each.markers = (Marker(PRODUCER, 3, 4, MOMENT_MS - 1000, is_commit=True),)
    assert decided_after(ids, [each]) == {}


def test_markers_count_where_a_state_from_before_the_moment_may_be_gone() -> None:
    """F1048: the cleaner has removed the states from offset 1 to 4, the decision among them."""
    first, later = records(State(ONGOING, 3, -900), State(ONGOING, 3, 500))
    ids = transactional_ids({0: [first, later._replace(offset=5)]}, {0: 5})
    each = plan()
    each.markers = (Marker(PRODUCER, 3, 8, MOMENT_MS - 1, is_commit=True),)
    assert decided_after(ids.values(), [each]) == {}


def test_a_commit_of_which_a_partition_may_lack_records_is_said() -> None:
    ids = known(State(PREPARE_COMMIT, 3, -500, partitions=(0, 1))).ids.values()
    plans = {("t", 0): plan(), ("t", 1): plan(covered_ms=MOMENT_MS - 700)}
    assert incomplete_commits(ids, plans, MOMENT_MS) == [("writer", "t", 1)]


def test_every_transaction_has_ended_in_the_new_log() -> None:
    for state, status in (
        (State(ONGOING, 3, -900), 5),
        (State(PREPARE_COMMIT, 3, -500), COMPLETE_COMMIT),
        (State(EMPTY, 3, -500), EMPTY),
    ):
        later = State(ONGOING, 8, 100)
        ids = known(state, later).ids.values()
        ((key, value),) = state_values(ids, 42)[0]
        read = read_internal_record(TOPIC, key, value)
        assert read.value is not None
        assert read.value["transactionStatus"] == status
        assert read.value["producerEpoch"] == 9
        assert read.value["transactionLastUpdateTimestampMs"] == 42
    # An id that was made after the moment is not there.
    assert state_values(known(State(EMPTY, 0, 100)).ids.values(), 42) == {}


def test_records_are_complete_from_the_last_gap_on() -> None:
    offsets = (0, 1, 5, 6, 7, 9)
    listed = [CoordinatorRecord(offset, 0, b"", None) for offset in offsets]
    assert complete_from(listed, 8) == 5
    assert complete_from(listed, 9) == 9
    assert complete_from(listed[:2], 2) == 0
