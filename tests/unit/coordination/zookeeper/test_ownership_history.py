"""Who owned what when, and what set it off. Rules: F449, F451 to F455, F461, F468."""

from kafkalog.coordination.zookeeper.ownership_history import (
    CREATE,
    DELETE,
    NOT_LOGGED,
    SESSION_END,
    SET_DATA,
    BrokerPlace,
    Moment,
    Ownership,
    OwnershipReplay,
    ZnodeChange,
    moved_brokers,
)
from tests.support.zookeeper.clusters import consumer, topic

G = "/consumers/g"


def played(*changes: tuple[str, str, str | None]) -> tuple[list[Ownership], OwnershipReplay]:
    """A change every second, in the order given."""
    replay = OwnershipReplay()
    ended = [
        ownership
        for number, (change, path, data) in enumerate(changes, start=1)
        for ownership in replay.take(
            ZnodeChange(
                path, change, None if data is None else data.encode(), 7, number, number * 1000
            )
        )
    ]
    return [*ended, *replay.still_held()], replay


def brief(ownership: Ownership) -> tuple[str, int | None, str | None, str | None]:
    claim, release = ownership.claim_trigger, ownership.release_trigger
    return (
        ownership.owner,
        ownership.unowned_ms,
        claim and claim.cause.value,
        release and release.cause.value,
    )


JOIN_A = (CREATE, f"{G}/ids/a", consumer("t"))
JOIN_B = (CREATE, f"{G}/ids/b", consumer("t"))


def owns(owner: str) -> tuple[str, str, str]:
    return CREATE, f"{G}/owners/t/0", owner


RELEASE = (DELETE, f"{G}/owners/t/0", None)


def test_a_consumer_that_joins_sets_the_others_off() -> None:
    # F452, F461: released at 4 s, claimed at 5 s
    ended, _ = played(JOIN_A, owns("a-0"), JOIN_B, RELEASE, owns("b-0"))
    assert [brief(ownership) for ownership in ended] == [
        ("a-0", None, "member_joined", "member_joined"),
        ("b-0", 1000, "member_joined", None),
    ]
    first, second = ended
    assert (first.claimed, first.released, first.release) == (
        Moment(2, 2000),
        Moment(4, 4000),
        "released",
    )
    assert first.release_trigger and first.release_trigger.name == "b"
    assert second.released is None and second.session_id == 7


def test_a_session_that_ends_leaves_the_partition_without_an_owner() -> None:
    # F436, F449
    ended, _ = played(
        JOIN_A,
        JOIN_B,
        owns("a-0"),
        (SESSION_END, f"{G}/owners/t/0", None),
        (SESSION_END, f"{G}/ids/a", None),
        owns("b-0"),
    )
    assert ended[0].release == "session_end"
    assert brief(ended[1]) == ("b-0", 2000, "member_left", None)


def test_new_partitions_set_consumers_of_the_topic_off() -> None:
    # F455
    more = (SET_DATA, "/brokers/topics/t", topic(2))
    ended, _ = played(JOIN_A, owns("a-0"), more, RELEASE, owns("a-0"))
    assert brief(ended[1]) == ("a-0", 1000, "partitions_changed", None)
    other = (SET_DATA, "/brokers/topics/u", topic(2))
    ended, _ = played(JOIN_A, owns("a-0"), other, RELEASE)
    assert brief(ended[0])[3] == "member_joined"


def test_new_topics_set_filters_off() -> None:
    # F454
    joins = (CREATE, f"{G}/ids/a", consumer("t.*", pattern="white_list"))
    ended, _ = played(joins, (CREATE, "/brokers/topics/t", topic(1)), owns("a-0"))
    assert brief(ended[0]) == ("a-0", None, "topic_added", None)


def test_brokers_set_off_who_watches_them() -> None:
    # F453: all consumers of 0.7; later ones when they have found none
    came, went = (CREATE, "/brokers/ids/0", "h:1"), (DELETE, "/brokers/ids/0", None)
    ended, _ = played(came, JOIN_A, owns("a-0"), went, RELEASE)
    assert brief(ended[0])[3] == "member_joined"
    ended, _ = played(JOIN_A, came, owns("a-0"))
    assert brief(ended[0])[2] == "broker_joined"
    oldest = (CREATE, "/brokers/topics/t/0", "1")
    ended, _ = played(oldest, came, JOIN_A, owns("a-0"), went, RELEASE)
    assert brief(ended[0])[3] == "broker_left"


def test_what_was_there_before_has_no_trigger() -> None:
    replay = OwnershipReplay()
    assert list(replay.take(ZnodeChange(f"{G}/ids/a", CREATE, None, 7, None, None))) == []
    assert list(replay.take(ZnodeChange(f"{G}/owners/t/0", CREATE, b"a-0", 7, None, None))) == []
    assert [brief(ownership) for ownership in replay.still_held()] == [("a-0", None, None, None)]


def test_brokers_that_were_in_several_places() -> None:
    # F437, F468: one that moved, and two with one id
    changes = [
        (CREATE, "/brokers/ids/0", "a:1"),
        (CREATE, "/brokers/ids/1", "b:1"),
        (DELETE, "/brokers/ids/0", None),
        (CREATE, "/brokers/ids/0", "c:1"),
        (CREATE, "/brokers/ids/1", "b:1"),
    ]
    _, replay = played(*changes)
    assert moved_brokers(replay.broker_places) == {
        "0": [BrokerPlace("0", "a:1", Moment(1, 1000)), BrokerPlace("0", "c:1", Moment(4, 4000))]
    }


def test_a_claim_over_one_that_is_held_ends_that() -> None:
    # F412: the release was in transactions that are missing
    first, second = played(JOIN_A, owns("a-0"), owns("b-0"))[0]
    assert (first.owner, first.released, first.release) == ("a-0", Moment(None, None), "not_logged")
    assert (second.owner, second.unowned_ms, second.released) == ("b-0", None, None)


def test_what_no_transaction_tells_sets_nothing_off() -> None:
    # F412, F452: that b joined is known from a snapshot alone
    replay = OwnershipReplay()
    changes = [
        ZnodeChange(f"{G}/ids/a", CREATE, consumer("t").encode(), 7, 1, 1000),
        ZnodeChange(f"{G}/owners/t/0", CREATE, b"a-0", 7, 2, 2000),
        ZnodeChange(f"{G}/ids/b", CREATE, consumer("t").encode(), 8, None, None),
        ZnodeChange(f"{G}/owners/t/0", NOT_LOGGED, None, 7, None, None),
        ZnodeChange(f"{G}/owners/t/0", CREATE, b"b-0", 8, 9, 9000),
    ]
    ended = [ownership for change in changes for ownership in replay.take(change)]
    told = [*ended, *replay.still_held()]
    assert [brief(ownership) for ownership in told] == [
        ("a-0", None, "member_joined", None),
        ("b-0", None, None, None),
    ]
    assert told[0].release == "not_logged"
