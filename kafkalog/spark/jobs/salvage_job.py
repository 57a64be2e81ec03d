"""What the salvage job takes on the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from kafkalog.inspection.partitions.salvage import SalvageSettings
from kafkalog.spark.jobs.job import add_config_arguments, add_index_interval_argument
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.writing.salvaged_log_dir import compacted_topics, refuse_doubtful
from kafkalog.views.options.config_files import topic_configs


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
    parser.add_argument(
        "--keep-doubtful",
        action="store_true",
        help="keep batches whose checksum is right although their offset, which is then set right, "
        "or their count of records contradicts what is there",
    )
    add_config_arguments(parser)
    add_index_interval_argument(parser, "the new indexes")


def salvage_settings(args: Namespace, logs: Iterable[PartitionLog], now_ms: int) -> SalvageSettings:
    """What the arguments say. Raises OptionError for topics and settings that cannot be."""
    configs = topic_configs(args.topic_config, args.server_properties)
    topics = compacted_topics(logs, args.compact_topics, configs, by_policy=args.compact)
    refuse_doubtful(keeps_doubtful=args.keep_doubtful, compacts=bool(topics))
    return SalvageSettings(
        now_ms,
        args.index_interval_bytes,
        compacted=topics,
        keeps_doubtful=args.keep_doubtful,
    )
