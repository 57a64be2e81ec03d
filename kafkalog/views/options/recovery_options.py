"""The options of `kafkalog recover` and `kafkalog salvage`, and of the jobs plan-recovery and
salvage, with the settings that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.options import Shutdown
from kafkalog.views.options.parameter_types import GivenPath

if TYPE_CHECKING:
    from kafkalog.inspection.partitions.salvage import SalvageSettings
    from kafkalog.storage.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class RecoveryOptions:
    """The values of the options, as they were given."""

    shutdown: str
    index_interval_bytes: int
    configs: ConfigSources
    kafka: str | None
    user: str | None
    libs: tuple[str, ...]
    as_of: int | None


def recovery_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, received as `given`."""
    return shared.settings_options(
        RecoveryOptions,
        "given",
        _shutdown_option,
        shared.index_interval_option("the topics"),
        shared.config_options,
        _kafka_version_option,
        _broker_user_option,
        _class_path_option,
        shared.as_of_option("When the broker starts, instead of now"),
    )(function)


def _kafka_version_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --kafka, received as `kafka`: the version that starts."""
    return click.option(
        "--kafka",
        metavar="VERSION",
        help="The version of Kafka that starts, such as 4.4; by default the newest that is known, "
        "and 3.9 for log directories of a broker with ZooKeeper.",
    )(function)


def _broker_user_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --user, received as `user`: who runs the broker."""
    return click.option(
        "--user",
        metavar="NAME",
        help="The user who runs the broker, by name or number: owners and modes are checked for "
        "it; by default the owner of most files.",
    )(function)


def _class_path_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --libs, received as `libs`: directories of the broker's jars."""
    return click.option(
        "--libs",
        metavar="DIR",
        type=GivenPath(),
        multiple=True,
        help="libs/ of Kafka, or another directory with jars of the broker's class path, to look "
        "for the classes that server.properties names.",
    )(function)


def _shutdown_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --shutdown, received as `shutdown`."""
    return click.option(
        "--shutdown",
        type=shared.choice_of(Shutdown),
        default=Shutdown.AS_FOUND.value,
        show_default=True,
        help="How the broker stopped before this start: as .kafka_cleanshutdown says, or as given.",
    )(function)


@dataclass(frozen=True, slots=True)
class SalvageRequest:
    """The values of the options, as they were given."""

    compact: bool
    compact_topics: tuple[str, ...]
    keep_doubtful: bool
    index_interval_bytes: int
    configs: ConfigSources

    def settings(
        self, logs: Sequence[PartitionLog], found: Sequence[PartitionLog], now_ms: int
    ) -> SalvageSettings:
        """Return the settings for these logs of those that were found. Raises OptionError for
        topics that no log has, and options that contradict each other."""
        from kafkalog.inspection.partitions.salvage import SalvageSettings
        from kafkalog.storage.writing.salvaged_log_dir import compacted_topics, refuse_doubtful

        compacts = self.compact or self.compact_topics
        configs = self.configs.of_logs(found) if compacts else self.configs.of_files()
        compacted = compacted_topics(logs, self.compact_topics, configs, by_policy=self.compact)
        refuse_doubtful(keeps_doubtful=self.keep_doubtful, compacts=bool(compacted))
        return SalvageSettings(
            now_ms,
            self.index_interval_bytes,
            compacted=compacted,
            keeps_doubtful=self.keep_doubtful,
        )


def _compaction_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --compact, --compact-topic and --keep-doubtful, received as `compact`, `compact_topics`
    and `keep_doubtful`."""
    compact = click.option(
        "--compact",
        is_flag=True,
        help="Compact the topics whose cleanup.policy is known to have compact: from "
        "--topic-config, __cluster_metadata, --server-properties, or because brokers create them "
        "so.",
    )
    topics = click.option(
        "--compact-topic",
        "compact_topics",
        metavar="TOPIC",
        multiple=True,
        help="Compact this topic, whatever its cleanup.policy is; repeatable.",
    )
    doubtful = click.option(
        "--keep-doubtful",
        is_flag=True,
        help="Keep batches whose checksum is right although their offset or their number of "
        "records contradicts the rest of the log; a wrong offset is corrected.",
    )
    return compact(topics(doubtful(function)))


def salvage_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, received as `request`."""
    return shared.settings_options(
        SalvageRequest,
        "request",
        _compaction_options,
        shared.config_options,
        shared.index_interval_option("the new indexes"),
    )(function)
