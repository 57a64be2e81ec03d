"""Offsets as commands of ZooKeeper's shell. That the shell takes them is in tests/broker."""

from kafkalog.coordination.zookeeper.zookeeper_commands import OffsetZnode, Shell, offset_commands

HELD = OffsetZnode("", "reader", "orders", 0, 42, version=7)
NEW = OffsetZnode("/kafka", "reader", "orders", 1, 43, version=None)


def test_what_is_there_is_set_at_the_version_that_was_read() -> None:
    # F477
    (line,) = offset_commands([HELD], (), Shell.FROM_3_5)
    assert line == "set -v 7 /consumers/reader/offsets/orders/0 42"
    (line,) = offset_commands([HELD], (), Shell.BEFORE_3_5)
    assert line == "set /consumers/reader/offsets/orders/0 42 7"


def test_what_is_not_there_is_created_with_the_parents_it_lacks() -> None:
    # F477
    there = {"/kafka/consumers", "/kafka/consumers/reader"}
    lines = offset_commands([NEW, NEW._replace(partition=2)], there, Shell.FROM_3_5)
    assert list(lines) == [
        'create /kafka/consumers/reader/offsets ""',
        'create /kafka/consumers/reader/offsets/orders ""',
        "create /kafka/consumers/reader/offsets/orders/1 43",
        "create /kafka/consumers/reader/offsets/orders/2 43",
    ]


def test_names_with_spaces_are_quoted_and_what_cannot_be_is_left_to_the_reader() -> None:
    # F477
    spaced = HELD._replace(group_id="my group")
    (line,) = offset_commands([spaced], (), Shell.FROM_3_5)
    assert line == 'set -v 7 "/consumers/my group/offsets/orders/0" 42'
    quoted = HELD._replace(group_id='my "own" group')
    (line,) = offset_commands([quoted], (), Shell.FROM_3_5)
    assert line == "set -v 7 '/consumers/my \"own\" group/offsets/orders/0' 42"
    for group in ('my "own" group\'s', "two\nlines", "a/b", "..", ""):
        (line,) = offset_commands([HELD._replace(group_id=group)], (), Shell.FROM_3_5)
        assert line.startswith("# cannot be written in the shell: ")
        assert "\n" not in line
