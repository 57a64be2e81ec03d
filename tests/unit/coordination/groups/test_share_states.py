"""States of share groups by hand-made records. Rule: F780."""

from kafkalog.coordination.groups.share_states import SharePartition, ShareState, ShareStates

KEY = {"groupId": "g", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 2}
PLACE = SharePartition("c", "g", "AAAAAAAAAAAAAAAAAAAAAQ", 2)


def value(start: int, complete: int) -> dict[str, int]:
    return {"startOffset": start, "deliveryCompleteCount": complete}


def test_an_update_leaves_what_it_does_not_name_and_a_snapshot_does_not() -> None:
    states = ShareStates()
    states.take("c", 0, KEY, value(5, 3), 1)
    states.take("c", 1, KEY, value(-1, 4), 2)
    assert states.states == {PLACE: ShareState(5, 4, 2)}
    states.take("c", 0, KEY, value(-1, -1), 3)
    assert states.states == {PLACE: ShareState(None, None, 3)}
    states.take("c", 0, KEY, None, 4)
    assert states.states == {}
