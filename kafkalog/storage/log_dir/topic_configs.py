"""Settings of topics and brokers by their names in Kafka, with the source of each.

Rules: docs/format.md F167, F168 and F254.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kafkalog.errors import OptionError
from kafkalog.format.side_files.properties import read_properties
from kafkalog.storage.names import BROKERS_TOPICS, CLUSTER_METADATA

TOPIC, SERVER, DEFAULT, UNKNOWN = "topic", "server", "default", "unknown"
ASSUMED = "assumed"
METADATA, ZOOKEEPER = "metadata", "zookeeper"
SERVER_PROPERTIES, TOPIC_CONFIG = "serverProperties", "topicConfig"

# Where a value that Kafka refuses is found.
_OPTIONS = {
    TOPIC: TOPIC_CONFIG,
    SERVER: SERVER_PROPERTIES,
    METADATA: CLUSTER_METADATA,
    ZOOKEEPER: ZOOKEEPER,
}
UNLIMITED = -1
DELETE_POLICY = "delete"

# Brokers create these with `compact`.
COMPACTED_TOPICS = frozenset(("__consumer_offsets", "__transaction_state"))
_AS_RETENTION = -2
_DEFAULT_RATIO = 0.5
_POLICIES = frozenset(("compact", "delete"))

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Setting(Generic[_Value]):
    """A value and its source: `topic` or `server` for the given files, `metadata` or `zookeeper`
    for the cluster's own records, `default`, `assumed` or, with None, `unknown`."""

    value: _Value | None
    source: str


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """The settings that count; a None is unknown, UNLIMITED or any negative number no limit.

    Of a tiered log these are the local limits.
    """

    cleanup_policy: frozenset[str] | None
    retention_ms: int | None
    retention_bytes: int | None
    is_tiered: bool = False

    @property
    def has_limits(self) -> bool | None:
        """Whether size and time count at all; None if unknown."""
        if self.cleanup_policy is None:
            return None
        return DELETE_POLICY in self.cleanup_policy or (not self.cleanup_policy and self.is_tiered)


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """The settings for retention, each with its source."""

    cleanup_policy: Setting[frozenset[str]]
    retention_ms: Setting[int]
    retention_bytes: Setting[int]
    is_tiered: bool = False

    @property
    def limits(self) -> RetentionLimits:
        return RetentionLimits(
            self.cleanup_policy.value,
            self.retention_ms.value,
            self.retention_bytes.value,
            self.is_tiered,
        )


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """The settings for the cleaner; `delete_retention_ms` is Kafka's default if nothing says it."""

    cleanup_policy: Setting[frozenset[str]]
    delete_retention_ms: int
    min_compaction_lag_ms: Setting[int]
    max_compaction_lag_ms: Setting[int]
    min_cleanable_dirty_ratio: Setting[float]

    @property
    def is_compacted(self) -> bool:
        return "compact" in (self.cleanup_policy.value or ())


# Of a topic's own settings, each with its source.
_Own = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RecordedConfigs:
    """The settings that a cluster's records hold: those of topics, and those that brokers were
    given while they ran, by their id, or by "" for all of them."""

    topics: Mapping[str, Mapping[str, str]]
    brokers: Mapping[str, Mapping[str, str]]
    source: str = METADATA


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    """The settings of the given files, the topics' own and the broker's, before those that the
    cluster's records hold; None for a file that is not given. A topic's setting is None where the
    file says that the topic has none of its own."""

    topics: Mapping[str, Mapping[str, str | None]] | None = None
    server: Mapping[str, str] | None = None
    recorded: RecordedConfigs = RecordedConfigs({}, {})
    broker_id: int | None = None

    def with_recorded(self, recorded: RecordedConfigs, broker_id: int | None) -> TopicConfigs:
        """Return these settings for logs of a broker of the cluster that has such records."""
        return replace(self, recorded=recorded, broker_id=broker_id)

    def retention(self, topic: str | None) -> RetentionSettings:
        """Return the settings for a topic. Raises OptionError for a value that Kafka would
        refuse."""
        own = self._own(topic)
        if topic in (None, CLUSTER_METADATA) or (own is None and topic in BROKERS_TOPICS):
            return TopicConfigs()._retention({})
        settings = self._retention(own or {})
        policy = settings.cleanup_policy
        if own is None and policy.value is not None:
            # The broker's default is known, and whether the topic has its own is not: F1351.
            return replace(settings, cleanup_policy=Setting(policy.value, ASSUMED))
        return settings

    def compaction(self, topic: str | None) -> CompactionSettings:
        """Return the settings for a topic. Raises OptionError for a value that Kafka would
        refuse."""
        own = self._own(topic) or {}
        policy = self._policy(own)
        if topic in COMPACTED_TOPICS and _CLEANUP_POLICY.topic_name not in own:
            policy = Setting(frozenset(("compact",)), DEFAULT)
        elif topic is None or (topic in BROKERS_TOPICS and not own):
            policy = Setting(None, UNKNOWN)
        delete_retention = self._number(own, _DELETE_RETENTION_MS).value
        return CompactionSettings(
            policy,
            _DELETE_RETENTION_MS.default if delete_retention is None else delete_retention,
            self._number(own, _MIN_COMPACTION_LAG_MS),
            self._number(own, _MAX_COMPACTION_LAG_MS),
            self._ratio(own),
        )

    def _own(self, topic: str | None) -> _Own | None:
        """Return the topic's own settings, None if nothing says which it has."""
        given = (self.topics or {}).get(topic or "")
        recorded = self.recorded.topics.get(topic or "")
        if given is None and recorded is None:
            return None
        own = {
            name: (self.recorded.source, value)
            for name, value in (recorded or {}).items()
            if _is_taken(name, value)
        }
        for name, value in (given or {}).items():
            own.pop(name, None)
            if value is not None:
                own[name] = (TOPIC, value)
        return own

    def _ratio(self, own: _Own) -> Setting[float]:
        found = self._found(own, _MIN_CLEANABLE_DIRTY_RATIO)
        if found is None:
            return self._unnamed(_DEFAULT_RATIO)
        if not _RATIO.fullmatch(found.value.strip()):
            raise found.refused("a number from 0 to 1")
        return Setting(float(found.value), found.source)

    def _retention(self, own: _Own) -> RetentionSettings:
        is_tiered = _is_true(own, "remote.storage.enable") and not _is_true(
            own, "remote.log.copy.disable"
        )
        time, size = self._number(own, _RETENTION_MS), self._number(own, _RETENTION_BYTES)
        if is_tiered:
            time = self._local(own, _LOCAL_RETENTION_MS, time)
            size = self._local(own, _LOCAL_RETENTION_BYTES, size)
        return RetentionSettings(self._policy(own), time, size, is_tiered)

    def _policy(self, own: _Own) -> Setting[frozenset[str]]:
        found = self._found(own, _CLEANUP_POLICY)
        if found is None:
            return self._unnamed(frozenset(("delete",)))
        words = _words(found.value)
        if not words <= _POLICIES:
            raise found.refused("compact, delete, both or neither")
        return Setting(words, found.source)

    def _number(self, own: _Own, config: _Config) -> Setting[int]:
        found = self._found(own, config)
        if found is None:
            return self._unnamed(config.default)
        if not _WHOLE.fullmatch(found.value.strip()):
            raise found.refused("a whole number")
        number = int(found.value) * found.factor
        if number >= 2**63:
            raise found.refused("a number of 64 bits, in milliseconds if it is a time")
        if number < 0 and config.default != _AS_RETENTION:
            number = UNLIMITED
        return Setting(number, found.source)

    def _local(self, own: _Own, config: _Config, whole: Setting[int]) -> Setting[int]:
        local = self._number(own, config)
        return whole if local.value == _AS_RETENTION else local

    def _unnamed(self, default: _Value) -> Setting[_Value]:
        """Kafka's default counts if the broker's settings are known and do not name it."""
        return Setting(None, UNKNOWN) if self.server is None else Setting(default, DEFAULT)

    def _found(self, own: _Own, config: _Config) -> _Found | None:
        if config.topic_name in own:
            source, value = own[config.topic_name]
            return _Found(source, _OPTIONS[source], config.topic_name, value)
        # What a broker was given while it runs wins over its file.
        of_server = [
            (self.recorded.source, self.recorded.brokers.get(str(self.broker_id), {})),
            (self.recorded.source, self.recorded.brokers.get("", {})),
            (SERVER, self.server or {}),
        ]
        for name, factor in config.server_names:
            for source, settings in of_server:
                is_recorded = source == self.recorded.source
                if name in settings and (not is_recorded or _is_taken(name, settings[name])):
                    return _Found(source, _OPTIONS[source], name, settings[name], factor)
        return None


@dataclass(frozen=True, slots=True)
class _Config:
    """A topic's setting; the broker's names for it, the strongest first, with their units."""

    topic_name: str
    server_names: tuple[tuple[str, int], ...]
    default: int = UNLIMITED


_CLEANUP_POLICY = _Config("cleanup.policy", (("log.cleanup.policy", 1),))
_RETENTION_MS = _Config(
    "retention.ms",
    (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    168 * 3_600_000,
)
_RETENTION_BYTES = _Config("retention.bytes", (("log.retention.bytes", 1),))
_LOCAL_RETENTION_MS = _Config("local.retention.ms", (("log.local.retention.ms", 1),), _AS_RETENTION)
_LOCAL_RETENTION_BYTES = _Config(
    "local.retention.bytes", (("log.local.retention.bytes", 1),), _AS_RETENTION
)

_DELETE_RETENTION_MS = _Config(
    "delete.retention.ms", (("log.cleaner.delete.retention.ms", 1),), 24 * 3_600_000
)
_MIN_COMPACTION_LAG_MS = _Config(
    "min.compaction.lag.ms", (("log.cleaner.min.compaction.lag.ms", 1),), 0
)
_MAX_COMPACTION_LAG_MS = _Config(
    "max.compaction.lag.ms", (("log.cleaner.max.compaction.lag.ms", 1),)
)
_MIN_CLEANABLE_DIRTY_RATIO = _Config(
    "min.cleanable.dirty.ratio", (("log.cleaner.min.cleanable.ratio", 1),)
)
_RATIO = re.compile(r"0(\.[0-9]+)?|\.[0-9]+|1(\.0+)?")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_NUMBERS = frozenset(
    name
    for config in (
        *(_RETENTION_MS, _RETENTION_BYTES, _LOCAL_RETENTION_MS, _LOCAL_RETENTION_BYTES),
        *(_DELETE_RETENTION_MS, _MIN_COMPACTION_LAG_MS, _MAX_COMPACTION_LAG_MS),
    )
    for name in (config.topic_name, *(name for name, _ in config.server_names))
)


@dataclass(frozen=True, slots=True)
class _Found:
    source: str
    option: str
    name: str
    value: str
    factor: int = 1

    def refused(self, allowed: str) -> OptionError:
        return OptionError(self.option, f"{self.name}={self.value}", f"{self.name}: {allowed}")


def _words(value: str) -> frozenset[str]:
    return frozenset(word.strip() for word in value.split(",") if word.strip())


def _is_taken(name: str, value: str) -> bool:
    """Return whether Kafka can parse a recorded value: it passes over others, of brokers, and does
    not start with them, of topics (docs/format.md F1016 and F1017)."""
    if name in _names_of(_CLEANUP_POLICY):
        return _words(value) <= _POLICIES
    if name in _names_of(_MIN_CLEANABLE_DIRTY_RATIO):
        return _RATIO.fullmatch(value.strip()) is not None
    return name not in _NUMBERS or (
        _WHOLE.fullmatch(value.strip()) is not None and abs(int(value)) < 2**63
    )


def _names_of(config: _Config) -> tuple[str, ...]:
    return config.topic_name, *(name for name, _ in config.server_names)


def _is_true(own: _Own, name: str) -> bool:
    return name in own and own[name][1].strip().lower() == "true"


def read_topic_configs(topics_text: str | None, server_text: str | None) -> TopicConfigs:
    """Read the settings from a JSON file of topics and from a broker's properties; either may be
    missing. Raises OptionError for JSON of another form."""
    return TopicConfigs(
        None if topics_text is None else _topics(topics_text),
        None if server_text is None else read_properties(server_text).values,
    )


def _topics(text: str) -> dict[str, dict[str, str | None]]:
    try:
        return {
            topic: {name: None if value is None else str(value) for name, value in configs.items()}
            for topic, configs in json.loads(text).items()
        }
    except (ValueError, AttributeError, RecursionError):
        allowed = 'a file with JSON such as {"orders": {"retention.ms": "604800000"}}'
        raise OptionError(TOPIC_CONFIG, text[:100], allowed) from None
