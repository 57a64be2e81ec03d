"""The options of `kafkalog salvage` and of the job salvage, and the settings they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources

if TYPE_CHECKING:
    from kafkalog.inspection.partitions.salvage import SalvageSettings
    from kafkalog.storage.partition_log import PartitionLog


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
