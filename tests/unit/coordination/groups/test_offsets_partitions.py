"""Which partition of `__consumer_offsets` groups belong to, by their own evidence. Rule: F323.

That the partition is that of Java's hash is in tests/spark/groups/test_offsets_topic.py.
"""

from kafkalog.coordination.groups.group_records import GroupKey
from kafkalog.coordination.groups.offsets_partitions import offsets_partitions


def belongs(groups: dict[str, int], partitions: list[int]) -> dict[str, int]:
    keys = [GroupKey("c", place, name) for name, place in groups.items()]
    return {
        key.group_id: place for key, place in offsets_partitions(keys, {"c": partitions}).items()
    }


def test_how_many_partitions_there_are_is_believed_where_groups_confirm_it() -> None:
    # F323: the hash of "a" is 97, so that of 6 partitions it belongs to 1, b to 2 and c to 3.
    everywhere = [*range(6), 3, 3]
    assert belongs({"a": 1, "b": 2, "c": 0}, everywhere) == {"a": 1, "b": 2, "c": 3}
    # One of the partitions is missing, or most groups lie elsewhere: unknown.
    assert belongs({"a": 1, "b": 2}, [0, 1, 2, 4, 5]) == {}
    assert belongs({"a": 1, "b": 5, "c": 4}, everywhere) == {}
    assert belongs({"a": 1}, []) == {}


def test_a_cluster_is_believed_by_its_own_groups() -> None:
    # F323
    keys = [GroupKey("c", 1, "a"), GroupKey("d", 5, "a")]
    found = offsets_partitions(keys, {"c": range(6), "d": range(6)})
    assert found == {keys[0]: 1}
