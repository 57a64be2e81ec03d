"""What a consumer registers and watches, and whom a change sets off. Rules: F436, F438, F447,
F450 to F456."""

import pytest

from kafkalog.coordination.zookeeper.registration import (
    Action,
    Cause,
    RegistryChange,
    Step,
    registration_steps,
    triggered_groups,
)
from kafkalog.coordination.zookeeper.topic_filters import Subscription, SubscriptionPattern

NAMED = Subscription(SubscriptionPattern.STATIC, {"orders": 2})
FILTER = Subscription(SubscriptionPattern.WHITE_LIST, {"ord.*": 1})
BUT = Subscription(SubscriptionPattern.BLACK_LIST, {"ord.*": 3})
GROUPS = {"named": {"c1": NAMED}, "filter": {"c2": FILTER}, "but": {"c3": BUT}, "empty": {}}


def test_the_steps_of_a_consumer_with_a_filter_are_the_documents() -> None:
    # F451 to F454
    assert list(registration_steps("g", "g_c", FILTER)) == [
        Step(Action.CREATE, "/consumers/g/ids/g_c"),
        Step(Action.WATCH_CHILDREN, "/consumers/g/ids"),
        Step(Action.WATCH_CHILDREN, "/brokers/ids"),
        Step(Action.WATCH_CHILDREN, "/brokers/topics"),
        Step(Action.REBALANCE, "/consumers/g"),
    ]


def test_one_that_names_topics_watches_each_of_them() -> None:
    # F451, F455
    steps = list(registration_steps("g", "g_c", NAMED))
    assert Step(Action.WATCH_DATA, "/brokers/topics/orders") in steps
    assert Step(Action.WATCH_CHILDREN, "/brokers/topics") not in steps
    assert steps[0].action is Action.CREATE and steps[-1].action is Action.REBALANCE


@pytest.mark.parametrize("cause", [Cause.MEMBER_JOINED, Cause.MEMBER_LEFT])
def test_members_set_off_their_own_group(cause: Cause) -> None:
    # F452
    assert triggered_groups(RegistryChange(cause, "c1", "named"), GROUPS) == {"named"}


@pytest.mark.parametrize("cause", [Cause.BROKER_JOINED, Cause.BROKER_LEFT])
def test_brokers_set_off_all_groups_with_consumers(cause: Cause) -> None:
    # F453
    assert triggered_groups(RegistryChange(cause, "0"), GROUPS) == {"named", "filter", "but"}


def test_a_topic_sets_off_groups_whose_filter_allows_it() -> None:
    # F450, F454: whoever enters it in the registry, when it is created
    assert triggered_groups(RegistryChange(Cause.TOPIC_ADDED, "orders"), GROUPS) == {"filter"}
    assert triggered_groups(RegistryChange(Cause.TOPIC_ADDED, "users"), GROUPS) == {"but"}
    assert triggered_groups(RegistryChange(Cause.TOPIC_DELETED, "orders"), GROUPS) == {"filter"}


def test_new_partitions_set_off_groups_that_consume_the_topic() -> None:
    # F455
    change = RegistryChange(Cause.PARTITIONS_CHANGED, "orders")
    assert triggered_groups(change, GROUPS) == {"named", "filter"}


@pytest.mark.parametrize(
    ("given", "topic", "streams"),
    [
        ('"a,b"', "b", 1),  # a comma is an alternative, quotes go
        (" a , b ", "a", 1),
        ("a", "ab", 0),  # the whole name
        (".*", "__consumer_offsets", 0),  # internal topics are left out
    ],
)
def test_filters_are_javas_expressions_of_the_whole_name(
    given: str, topic: str, streams: int
) -> None:
    # F456
    white = Subscription(SubscriptionPattern.WHITE_LIST, {given: 1})
    assert white.streams_of(topic) == streams
