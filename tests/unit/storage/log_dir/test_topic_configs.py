"""Where a topic's limits come from. Rules: F167, F168 and F254."""

import json
from typing import Any

import pytest

from kafkalog.errors import OptionError
from kafkalog.storage.log_dir.topic_configs import (
    DEFAULT,
    METADATA,
    SERVER,
    TOPIC,
    UNKNOWN,
    UNLIMITED,
    CompactionSettings,
    RecordedConfigs,
    RetentionLimits,
    RetentionSettings,
    Setting,
    TopicConfigs,
    read_topic_configs,
)

HOUR = 3_600_000


def settings(
    topic: dict[str, object] | None = None, server: str | None = None, name: str = "orders"
) -> RetentionSettings:
    topics = None if topic is None else json.dumps({name: topic})
    return read_topic_configs(topics, server).retention(name)


def test_nothing_given_is_nothing_known() -> None:
    assert settings() == RetentionSettings(
        Setting(None, "unknown"), Setting(None, "unknown"), Setting(None, "unknown")
    )
    assert settings().limits == RetentionLimits(None, None, None)


def test_kafkas_defaults_count_where_the_brokers_settings_are_given() -> None:
    assert settings({}, server="") == RetentionSettings(
        Setting(frozenset(("delete",)), "default"),
        Setting(168 * HOUR, "default"),
        Setting(-1, "default"),
    )


def test_the_brokers_policy_is_only_assumed_of_a_topic_that_nothing_describes() -> None:
    # F1351
    policy = settings(server="log.cleanup.policy=delete").cleanup_policy
    assert policy == Setting(frozenset(("delete",)), "assumed")
    assert settings(server="").cleanup_policy == policy


def test_a_topics_own_setting_wins_and_the_rest_is_unknown_without_the_brokers() -> None:
    own = settings({"retention.ms": "5000"}, server="log.retention.ms=1\nlog.retention.bytes=7\n")
    assert (own.retention_ms, own.retention_bytes) == (Setting(5000, "topic"), Setting(7, "server"))
    alone = settings({"retention.ms": 5000})
    assert alone.retention_ms == Setting(5000, "topic")
    assert alone.retention_bytes.source == alone.cleanup_policy.source == "unknown"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("log.retention.hours=2", 2 * HOUR),
        ("log.retention.minutes=3\nlog.retention.hours=2", 3 * 60_000),
        ("log.retention.hours=2\nlog.retention.ms=4\nlog.retention.minutes=3", 4),
        # As in Java, white space separates, and a backslash at the end joins lines.
        ("log.retention.hours 2", 2 * HOUR),
        ("log.retention.hours \t: 2", 2 * HOUR),
        ("log.retention.ho\\\n  urs=\\\n 2", 2 * HOUR),
        ("#log.retention.ms=1\\\nlog.retention.hours=2", 2 * HOUR),
        ("log.retention.hours=-1", -1),
        ("log.retention.minutes=-1", -1),
        ("log.retention.ms=-1\nlog.retention.hours=1", -1),
        ("log.retention.ms=1\nlog.retention.ms=2", 2),
    ],
)
def test_the_brokers_finer_unit_wins(lines: str, expected: int) -> None:
    assert settings(server=lines).retention_ms == Setting(expected, "server")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("compact", {"compact"}),
        ("compact,delete", {"compact", "delete"}),
        ("delete, compact", {"compact", "delete"}),
        ("", set()),
    ],
)
def test_policies_are_lists(value: str, words: set[str]) -> None:
    assert settings({"cleanup.policy": value}).cleanup_policy == Setting(frozenset(words), "topic")
    from_server = settings({}, server=f"log.cleanup.policy={value}")
    assert from_server.cleanup_policy == Setting(frozenset(words), "server")


def test_a_tiered_topics_local_limits_count() -> None:
    # F166
    tiered = {"remote.storage.enable": True, "retention.ms": "9000", "retention.bytes": "900"}
    whole = settings(tiered, server="")
    assert whole.limits == RetentionLimits(frozenset(("delete",)), 9000, 900, is_tiered=True)
    local = settings({**tiered, "local.retention.ms": "10", "local.retention.bytes": -2}, server="")
    assert local.limits == RetentionLimits(frozenset(("delete",)), 10, 900, is_tiered=True)
    server = settings(tiered, server="log.local.retention.bytes=70")
    assert server.retention_bytes == Setting(70, "server")
    # Without the broker's settings the local ones may be anything.
    assert settings(tiered).limits == RetentionLimits(None, None, None, is_tiered=True)


def test_a_topic_that_is_not_copied_any_more_is_not_tiered() -> None:
    own = {"remote.storage.enable": "true", "remote.log.copy.disable": "true", "retention.ms": "9"}
    assert settings({**own, "local.retention.ms": "1"}, server="").limits == RetentionLimits(
        frozenset(("delete",)), 9, -1
    )


@pytest.mark.parametrize(
    "name",
    ["__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"],
)
def test_the_brokers_settings_do_not_tell_those_of_internal_topics(name: str) -> None:
    # F168: brokers create __consumer_offsets as compacted, whatever log.cleanup.policy says.
    assert settings(server="", name=name) == settings()
    own = settings({"cleanup.policy": "compact"}, server="", name=name)
    assert own.cleanup_policy == Setting(frozenset(("compact",)), "topic")


def test_krafts_own_log_knows_no_retention() -> None:
    assert settings({"retention.ms": "1"}, server="", name="__cluster_metadata") == settings()
    assert TopicConfigs({}, {}).retention(None) == settings()


@pytest.mark.parametrize(
    ("topic", "server", "said"),
    [
        ({"retention.ms": "a week"}, None, "topicConfig: 'retention.ms=a week'"),
        ({"cleanup.policy": "purge"}, None, "expected cleanup.policy: compact, delete, both"),
        (None, "log.retention.hours=1.5", "serverProperties: 'log.retention.hours=1.5'"),
    ],
)
def test_a_value_that_kafka_refuses_is_an_error(
    topic: dict[str, object] | None, server: str | None, said: str
) -> None:
    with pytest.raises(OptionError, match="is not valid") as caught:
        settings(topic, server)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", '{"orders": 1}', "orders.retention.ms=1"])
def test_a_file_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(OptionError, match=r'such as \{"orders": '):
        read_topic_configs(text, None)


@pytest.mark.parametrize(
    "server", ["log.retention.hours=9999999999999999999", "log.retention.ms=9223372036854775808"]
)
def test_a_limit_of_more_than_64_bits_is_refused(server: str) -> None:
    with pytest.raises(OptionError, match="64 bits"):
        settings(server=server)
    with pytest.raises(OptionError, match="64 bits"):
        settings({"retention.bytes": str(2**63)})


def test_what_the_cleaner_goes_by() -> None:
    # F254: the topic's own setting, else the broker's, else Kafka's default.
    topics = {"users": {"cleanup.policy": "compact", "delete.retention.ms": "5"}}
    server = {
        "log.cleaner.delete.retention.ms": "6",
        "log.cleaner.min.compaction.lag.ms": "7",
        "log.cleaner.max.compaction.lag.ms": "8",
        "log.cleaner.min.cleanable.ratio": "0.25",
    }
    configs = TopicConfigs(topics, server)
    users, orders = configs.compaction("users"), configs.compaction("orders")
    compact, delete = frozenset(("compact",)), frozenset(("delete",))
    lags, ratio = (Setting(7, SERVER), Setting(8, SERVER)), Setting(0.25, SERVER)
    assert users == CompactionSettings(Setting(compact, TOPIC), 5, *lags, ratio)
    assert orders == CompactionSettings(Setting(delete, DEFAULT), 6, *lags, ratio)
    assert (users.is_compacted, orders.is_compacted) == (True, False)
    unknown: Setting[Any] = Setting(None, UNKNOWN)
    assert TopicConfigs().compaction("orders") == CompactionSettings(
        unknown, 86_400_000, unknown, unknown, unknown
    )
    assert TopicConfigs({}, {}).compaction("orders") == CompactionSettings(
        Setting(delete, DEFAULT),
        86_400_000,
        Setting(0, DEFAULT),
        Setting(UNLIMITED, DEFAULT),
        Setting(0.5, DEFAULT),
    )
    assert TopicConfigs().compaction("__consumer_offsets").is_compacted
    assert configs.compaction("__share_group_state").cleanup_policy == Setting(None, UNKNOWN)


def test_the_clusters_records_are_between_the_given_files() -> None:
    # F167, F169: of a topic its own file wins, of a broker what it was given while it runs.
    recorded = RecordedConfigs(
        {"orders": {"retention.ms": "1", "retention.bytes": "2"}, "users": {}},
        {
            "": {"log.retention.ms": "3", "log.cleanup.policy": "compact"},
            "7": {"log.retention.ms": "4"},
        },
    )
    given = read_topic_configs(
        json.dumps({"orders": {"retention.bytes": "5"}}), "log.retention.ms=6\n"
    )
    configs = given.with_recorded(recorded, 7)
    own = configs.retention("orders")
    assert (own.retention_ms, own.retention_bytes) == (Setting(1, METADATA), Setting(5, TOPIC))
    assert configs.retention("users").retention_ms == Setting(4, METADATA)
    others = given.with_recorded(recorded, 8).retention("users")
    assert others.retention_ms == Setting(3, METADATA)
    assert others.cleanup_policy == Setting(frozenset(("compact",)), METADATA)
    assert given.retention("users").retention_ms == Setting(6, SERVER)
    reset = read_topic_configs('{"orders": {"retention.ms": null}}', None)
    assert reset.with_recorded(recorded, 7).retention("orders").retention_ms == Setting(4, METADATA)
    assert reset.retention("orders").retention_ms == Setting(None, UNKNOWN)


@pytest.mark.parametrize("value", ["2", "1.5", "-0.1", "half", ""])
def test_a_dirty_ratio_is_from_0_to_1(value: str) -> None:
    configs = TopicConfigs({"users": {"min.cleanable.dirty.ratio": value}})
    with pytest.raises(OptionError, match="a number from 0 to 1"):
        configs.compaction("users")
