"""Which commits take effect, by the rules of a group coordinator's loading."""

from kafkalog.coordination.groups.offset_commits import Decision, Effect, OffsetCommitReplay

KEY = b"group, orders-0"
OTHER = b"group, orders-1"


def test_a_plain_commit_takes_effect_at_once() -> None:
    assert OffsetCommitReplay().commit(KEY, 5) == Decision(5, Effect.APPLIED, 5)


def test_a_transactional_commit_takes_effect_with_its_marker() -> None:
    # F300, T35
    replay = OffsetCommitReplay()
    assert replay.transactional_commit(KEY, 5, 7) is None
    assert replay.transactional_commit(OTHER, 6, 7) is None
    assert list(replay.marker(8, 7, is_commit=True)) == []
    assert list(replay.marker(7, 8, is_commit=True)) == [
        Decision(5, Effect.APPLIED, 8),
        Decision(6, Effect.APPLIED, 8),
    ]
    assert list(replay.still_open()) == []


def test_an_aborted_transactional_commit_takes_none() -> None:
    # F300, T35
    replay = OffsetCommitReplay()
    replay.transactional_commit(KEY, 5, 7)
    assert list(replay.marker(7, 6, is_commit=False)) == [Decision(5, Effect.ABORTED, None)]


def test_a_commit_is_older_than_one_that_took_effect_meanwhile() -> None:
    # F301, T35: the record's own offset counts, not the marker's.
    replay = OffsetCommitReplay()
    replay.transactional_commit(KEY, 5, 7)
    replay.commit(KEY, 6)
    assert list(replay.marker(7, 8, is_commit=True)) == [Decision(5, Effect.OLDER, None)]


def test_a_later_commit_of_the_transaction_replaces_an_earlier() -> None:
    replay = OffsetCommitReplay()
    replay.transactional_commit(KEY, 5, 7)
    assert replay.transactional_commit(KEY, 6, 7) == Decision(5, Effect.REPLACED, None)
    assert list(replay.marker(7, 8, is_commit=True)) == [Decision(6, Effect.APPLIED, 8)]


def test_a_tombstone_deletes_what_waits_as_well() -> None:
    # F302, T35
    replay = OffsetCommitReplay()
    replay.commit(KEY, 4)
    replay.transactional_commit(KEY, 5, 7)
    replay.transactional_commit(OTHER, 6, 7)
    assert list(replay.tombstone(KEY, 7)) == [
        Decision(5, Effect.DELETED, None),
        Decision(7, Effect.APPLIED, 7),
    ]
    assert list(replay.marker(7, 8, is_commit=True)) == [Decision(6, Effect.APPLIED, 8)]


def test_what_waits_at_the_end_is_open() -> None:
    replay = OffsetCommitReplay()
    replay.transactional_commit(KEY, 5, 7)
    assert list(replay.still_open()) == [Decision(5, Effect.OPEN, None)]
