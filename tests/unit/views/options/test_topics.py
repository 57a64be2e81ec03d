"""Which partitions are read: subscribe, subscribePattern, assign, or none of them. F93."""

from pathlib import Path

import pytest

from kafkalog.errors import OptionError
from kafkalog.messages.catalog import topic_families
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.views.options.option_values import OptionValues
from kafkalog.views.options.topics import TopicChoice, internal_logs, topic_choice
from tests.support.logs.log_dirs import UNIQUE, add_partition, log_name, log_of

LOGS = [
    log_of("__cluster_metadata", 0, 0),
    log_of("__consumer_offsets", 3, 0),
    log_of("__remote_log_metadata", 0, 0),
    log_of("__share_group_state", 0, 0),
    log_of("__transaction_state", 0, 0),
    log_of("eu.orders-v2", 0, 0),
    log_of("orders", 0, 0),
    log_of("orders", 1, 0),
    log_of("orders", 12, 0),
    log_of("users", 0, 0),
]
ORDINARY = [log.name for log in LOGS if log.topic not in INTERNAL_TOPICS]


def choice(**given: str) -> TopicChoice:
    return topic_choice(OptionValues(given, ("subscribe", "subscribePattern", "assign")))


def chosen(**given: str) -> list[str]:
    """The partitions chosen of LOGS."""
    return [log.name for log in choice(**given).chosen(LOGS)]


def test_without_a_choice_every_topic_but_the_internal_ones_is_read() -> None:
    # F93: other topics that begin with two underscores are ordinary.
    assert "__remote_log_metadata-0" in ORDINARY
    assert chosen() == ORDINARY


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_an_internal_topic_is_read_when_it_is_subscribed(topic: str) -> None:
    # F93.
    assert {log.topic for log in choice(subscribe=topic).chosen(LOGS)} == {topic}


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_an_internal_topic_is_read_when_it_is_assigned(topic: str) -> None:
    # F93.
    (wanted,) = [log for log in LOGS if log.topic == topic]
    assert choice(assign=f'{{"{topic}":[{wanted.partition}]}}').chosen(LOGS) == [wanted]


@pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
def test_an_internal_topic_is_read_when_its_directory_is_given(topic: str, tmp_path: Path) -> None:
    # F93.
    named = find_partitions([str(add_partition(tmp_path, f"{topic}-0", 0))])
    assert choice().chosen(named) == named


def test_an_internal_topic_is_read_when_its_file_is_given(tmp_path: Path) -> None:
    # F93.
    partition = add_partition(tmp_path, "__consumer_offsets-0", 0)
    named = find_partitions([str(partition / log_name(0))])
    assert choice().chosen(named) == named


def test_a_file_of_no_topic_is_read() -> None:
    logs = [log_of(None, None, 0, is_live=False, is_named=True)]
    assert choice().chosen(logs) == logs


def test_a_deleted_directory_given_by_path_is_read(tmp_path: Path) -> None:
    # F92, T32.
    named = find_partitions([str(add_partition(tmp_path, f"orders-0.{UNIQUE}-delete", 0))])
    assert choice().chosen(named) == named
    assert choice(subscribe="orders").chosen(named) == named


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("orders", ["orders-0", "orders-1", "orders-12"]),
        ("users,orders", ["orders-0", "orders-1", "orders-12", "users-0"]),
        (" eu.orders-v2 , users ", ["eu.orders-v2-0", "users-0"]),
        ("__consumer_offsets,users", ["__consumer_offsets-3", "users-0"]),
        ("users,users", ["users-0"]),
    ],
)
def test_subscribed_topics_are_read_with_all_their_partitions(
    value: str, expected: list[str]
) -> None:
    assert chosen(subscribe=value) == expected


def test_a_star_stands_for_all_topics_internal_ones_included() -> None:
    assert chosen(subscribe="*") == [log.name for log in LOGS]


def test_a_subscribed_topic_that_is_not_there_is_an_error_naming_it_and_what_is() -> None:
    with pytest.raises(OptionError) as caught:
        chosen(subscribe="orders,payments,Orders")
    assert (caught.value.name, caught.value.value) == ("subscribe", "payments,Orders")
    for present in ("eu.orders-v2", "orders", "users"):
        assert present in str(caught.value)


def test_subscribed_topics_of_no_directory_at_all_are_an_error() -> None:
    with pytest.raises(OptionError, match="nothing"):
        choice(subscribe="orders").chosen([])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (".*", ORDINARY),
        ("^orders$", ["orders-0", "orders-1", "orders-12"]),
        ("^(eu[.].*|users)$", ["eu.orders-v2-0", "users-0"]),
        ("^__.*", [log.name for log in LOGS if log.name.startswith("__")]),
        ("__consumer_offsets", ["__consumer_offsets-3"]),
        ("^payments.*", []),
    ],
)
def test_topics_that_match_the_pattern_are_read(pattern: str, expected: list[str]) -> None:
    # F93: a pattern for everything is not meant to match internal topics.
    assert chosen(subscribePattern=pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", ["eu.orders-v2-0", "orders-0", "orders-1", "orders-12"]),
        ("^eu", ["eu.orders-v2-0"]),
        ("s$", ["orders-0", "orders-1", "orders-12", "users-0"]),
    ],
)
def test_a_pattern_may_match_a_part_of_the_name(pattern: str, expected: list[str]) -> None:
    assert chosen(subscribePattern=pattern) == expected


def test_spaces_around_a_pattern_do_not_count() -> None:
    assert chosen(subscribePattern=" users ") == ["users-0"]


@pytest.mark.parametrize("pattern", ["users|__consumer_offsets", "(__consumer_offsets|users)"])
def test_a_pattern_that_names_an_internal_topic_reads_it(pattern: str) -> None:
    # F93.
    assert chosen(subscribePattern=pattern) == ["__consumer_offsets-3", "users-0"]


@pytest.mark.parametrize("pattern", ["(", "[a", "*", r"\p{Alpha}"])
def test_what_is_not_a_regular_expression_is_an_error_naming_the_option(pattern: str) -> None:
    with pytest.raises(OptionError) as caught:
        choice(subscribePattern=pattern)
    assert (caught.value.name, caught.value.value) == ("subscribePattern", pattern)
    assert "a regular expression" in str(caught.value)


@pytest.mark.parametrize("pattern", ["", "  "])
def test_an_empty_pattern_is_an_error_naming_the_option(pattern: str) -> None:
    with pytest.raises(OptionError, match="subscribePattern"):
        choice(subscribePattern=pattern)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"orders":[0]}', ["orders-0"]),
        ('{"orders":[12,0],"users":[0]}', ["orders-0", "orders-12", "users-0"]),
        (' {"eu.orders-v2": [0]} ', ["eu.orders-v2-0"]),
        ('{"orders":[],"users":[0]}', ["users-0"]),
    ],
)
def test_assigned_partitions_are_read(value: str, expected: list[str]) -> None:
    assert chosen(assign=value) == expected


def test_an_assigned_partition_that_is_not_there_is_an_error_naming_it_and_what_is() -> None:
    with pytest.raises(OptionError) as caught:
        chosen(assign='{"orders":[1,2],"payments":[0]}')
    assert (caught.value.name, caught.value.value) == ("assign", "orders-2,payments-0")
    for present in ("orders-0", "orders-12", "users-0"):
        assert present in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "orders",
        "{}",
        "[]",
        '["orders"]',
        '{"orders":0}',
        '{"orders":"01"}',
        '{"orders":["0"]}',
        '{"orders":[0.0]}',
        '{"orders":[true]}',
        '{"orders":[null]}',
        '{"orders":{"0":1}}',
        '{"orders":[0]',
        '{"orders":[]}',
        "null",
    ],
)
def test_any_other_assignment_is_an_error_naming_option_and_form(value: str) -> None:
    with pytest.raises(OptionError) as caught:
        choice(assign=value)
    assert (caught.value.name, caught.value.value) == ("assign", value)
    assert '{"topic":[0,1]}' in str(caught.value)


@pytest.mark.parametrize(
    "names",
    [
        ("subscribe", "subscribePattern"),
        ("subscribe", "assign"),
        ("subscribePattern", "assign"),
        ("subscribe", "subscribePattern", "assign"),
    ],
)
def test_more_than_one_choice_is_an_error_naming_them(names: tuple[str, ...]) -> None:
    given = {"subscribe": "orders", "subscribePattern": "orders", "assign": '{"orders":[0]}'}
    with pytest.raises(OptionError) as caught:
        choice(**{name: given[name] for name in names})
    for name in names:
        assert name in caught.value.name


def test_many_topics_are_not_all_told_in_an_error() -> None:
    logs = [log_of(f"topic-{number:03d}", 0, 0) for number in range(500)]
    with pytest.raises(OptionError) as caught:
        choice(subscribe="orders").chosen(logs)
    assert "topic-000, topic-001" in str(caught.value)
    assert len(str(caught.value)) < 1000


MESSAGES = [log.name for log in LOGS if log.topic in topic_families()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, MESSAGES),
        ({"subscribe": "*"}, MESSAGES),
        ({"subscribePattern": "__"}, MESSAGES),
        ({"subscribePattern": "__c|orders"}, MESSAGES[:2]),
        ({"subscribe": "__share_group_state"}, ["__share_group_state-0"]),
        ({"assign": '{"__consumer_offsets":[3]}'}, ["__consumer_offsets-3"]),
    ],
)
def test_messages_are_read_of_topics_that_have_known_ones(
    given: dict[str, str], expected: list[str]
) -> None:
    assert len(MESSAGES) == 5
    assert [
        log.name for log in internal_logs(choice(**given), LOGS, "messages", topic_families())
    ] == expected


@pytest.mark.parametrize(
    "given", [{"subscribe": "__consumer_offsets,orders"}, {"assign": '{"orders":[0]}'}]
)
def test_messages_of_another_topic_are_an_error_naming_those_that_are_known(
    given: dict[str, str],
) -> None:
    with pytest.raises(OptionError) as caught:
        internal_logs(choice(**given), LOGS, "messages", topic_families())
    assert (caught.value.name, caught.value.value) == ("view", "messages of orders")
    assert all(topic in str(caught.value) for topic in topic_families())
