"""What the salvage job takes on the command line, and what it says on the terminal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from pyspark.sql import Row

from kafkalog.columns.salvage import SalvageSettings
from kafkalog.errors import OptionError
from kafkalog.spark.config_files import topic_configs
from kafkalog.spark.job import (
    add_config_arguments,
    add_index_interval_argument,
    counted,
)
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.topic_configs import TopicConfigs


def add_salvage_arguments(parser: ArgumentParser) -> None:
    """Where to write, and whether to compact."""
    parser.add_argument(
        "--salvage-to",
        metavar="NEW_LOG_DIR",
        required=True,
        help="the log directory to write; it must not exist",
    )
    parser.add_argument(
        "--compact",
        action="store_true",
        help="compact the topics whose cleanup.policy is known to have compact: by "
        "--server-properties, by --topic-config, or because brokers create them so",
    )
    parser.add_argument(
        "--compact-topics",
        metavar="TOPIC,...",
        type=lambda text: text.split(","),
        default=[],
        help="compact these topics, whatever their cleanup.policy is",
    )
    add_config_arguments(parser)
    add_index_interval_argument(parser, "the new indexes")


def salvage_settings(args: Namespace, logs: Iterable[PartitionLog], now_ms: int) -> SalvageSettings:
    """What the arguments say. Raises OptionError for topics and settings that cannot be."""
    configs = topic_configs(args.topic_config, args.server_properties)
    topics = compacted_topics(logs, args.compact_topics, configs, by_policy=args.compact)
    return SalvageSettings(now_ms, args.index_interval_bytes, compacted=topics)


def compacted_topics(
    logs: Iterable[PartitionLog], named: Sequence[str], configs: TopicConfigs, *, by_policy: bool
) -> dict[str, int]:
    """The topics to compact, each with its delete.retention.ms: those named and, `by_policy`,
    those whose cleanup.policy is known to have `compact`.

    Raises OptionError for a name that no log has, and if there is nothing to compact by policy.
    """
    topics = sorted({log.topic for log in logs if log.topic is not None})
    unknown = sorted(set(named) - set(topics))
    if unknown:
        raise OptionError(
            "--compact-topics", ",".join(unknown), f"topics that are there: {', '.join(topics)}"
        )
    settings = {topic: configs.compaction(topic) for topic in topics}
    if by_policy and not named and not any(each.is_compacted for each in settings.values()):
        allowed = "topics with one, by --topic-config, --server-properties or --compact-topics"
        raise OptionError("--compact", "no cleanup.policy with compact", allowed)
    return {
        topic: each.delete_retention_ms
        for topic, each in settings.items()
        if topic in named or (by_policy and each.is_compacted)
    }


def salvage_verdict(totals: Row, target: str) -> str:
    """One line: what is in the new directory, and what is not."""
    kept = (
        f"{counted(totals.partitions, 'partition')} with {counted(totals.batches, 'batch')}, "
        f"{counted(totals.records, 'record')}, {counted(totals.kept_bytes, 'byte')} in {target}"
    )
    if totals.compacted_topics:
        kept += (
            f"; {counted(totals.compacted_bytes, 'byte')} less after compaction of "
            f"{', '.join(sorted(totals.compacted_topics))}"
        )
    lost = "nothing was lost"
    if totals.lost_ranges:
        lost = (
            f"LOST: {counted(totals.lost_bytes, 'byte')} in {counted(totals.lost_ranges, 'range')}"
        )
    if totals.start_errors:
        lost += f"; a broker would stumble over {counted(totals.start_errors, 'partition')}"
    if totals.without_topic_id:
        lost += (
            f"; {counted(totals.without_topic_id, 'partition')} had no topic id "
            "(partition.metadata): a broker with KRaft sets them aside as stray"
        )
    return f"{kept}; {lost}"
