"""Which partition of `__consumer_offsets` groups belong to, by their own evidence. Rule: F323.

That the partition is that of Java's hash is in tests/spark/groups/test_offsets_topic.py.
"""

from kafkalog.coordination.groups.commit_status import (
    is_confirmed,
    offsets_partition_of,
    partition_count,
)


def belongs(groups: dict[str, int], partitions: list[int]) -> dict[str, int]:
    """Where groups belong that are in some partitions of a topic, as far as that is known."""
    count = partition_count(partitions)
    if count is None:
        return {}
    places = {name: offsets_partition_of(name, count) for name in groups}
    in_place = sum(places[name] == place for name, place in groups.items())
    return places if is_confirmed(in_place, len(groups)) else {}


def test_how_many_partitions_there_are_is_believed_where_groups_confirm_it() -> None:
    # F323: the hash of "a" is 97, so that of 6 partitions it belongs to 1, b to 2 and c to 3.
    everywhere = [*range(6), 3, 3]
    assert belongs({"a": 1, "b": 2, "c": 0}, everywhere) == {"a": 1, "b": 2, "c": 3}
    # One of the partitions is missing, or most groups lie elsewhere: unknown.
    assert belongs({"a": 1, "b": 2}, [0, 1, 2, 4, 5]) == {}
    assert belongs({"a": 1, "b": 5, "c": 4}, everywhere) == {}
    assert belongs({"a": 1}, []) == {}
