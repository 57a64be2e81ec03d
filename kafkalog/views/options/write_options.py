"""The options of `df.write.format("kafkalog")`. Reference: docs/writing.md."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafkalog.columns.records.record_metadata import COMPRESSION_NAMES
from kafkalog.columns.writing.batch_encoder import DEFAULT_BATCH_BYTES
from kafkalog.errors import KafkaLogError, OptionError, RefusedOptionError
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.format.side_files.partition_metadata import read_topic_id, write_topic_id
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.views.options.option_values import OptionValues
from kafkalog.wire.compression import CompressionType

_LARGEST_FILE = 2**31 - 1
_TOPIC = "topic"
_COMPRESSION = "compression"
_TOPIC_IDS = "topicIds"
WRITE_OPTION_NAMES = (
    "path",
    _TOPIC,
    _COMPRESSION,
    "batchSize",
    "segmentBytes",
    "segmentMs",
    "indexIntervalBytes",
    _TOPIC_IDS,
    # Delta's, of a session that merges schemas: without effect here. F1342
    "mergeSchema",
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """All options of a write, parsed and checked. `settings` allow batches as large as a segment;
    `topic`, if given, is the topic of all rows."""

    log_dir: str
    topic: str | None
    compression: CompressionType
    batch_bytes: int
    settings: LogSettings
    topic_ids: Mapping[str, str]


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse and check the options of a write. Raises OptionError naming the option."""
    options = OptionValues(given, WRITE_OPTION_NAMES)
    for name in options.unused:
        raise RefusedOptionError(
            name, "kafkalog writes files, not to a broker: leave out options of Kafka's clients"
        )
    usual = LogSettings()
    segment_bytes = options.number(
        "segmentBytes", default=usual.segment_bytes, largest=_LARGEST_FILE
    )
    return WriteOptions(
        log_dir=_log_dir(options),
        topic=options.text(_TOPIC),
        compression=_compression(options),
        batch_bytes=options.number(
            "batchSize", default=DEFAULT_BATCH_BYTES, largest=MAX_BATCH_BYTES
        ),
        settings=LogSettings(
            segment_bytes=segment_bytes,
            segment_ms=options.number("segmentMs", default=usual.segment_ms),
            index_interval_bytes=options.number(
                "indexIntervalBytes", default=usual.index_interval_bytes, largest=_LARGEST_FILE
            ),
            max_message_bytes=min(MAX_BATCH_BYTES, segment_bytes),
        ),
        topic_ids=_topic_ids(options),
    )


def _log_dir(options: OptionValues) -> str:
    (path,) = options.paths("a directory of this machine")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise OptionError("path", path, "a directory that all machines share, not a URI")
    # Tasks have a working directory of their own.
    return os.path.abspath(path)


def _compression(options: OptionValues) -> CompressionType:
    name = (options.text(_COMPRESSION) or COMPRESSION_NAMES[0]).strip().lower()
    if name not in COMPRESSION_NAMES:
        raise OptionError(_COMPRESSION, name, COMPRESSION_NAMES)
    return CompressionType(COMPRESSION_NAMES.index(name))


def _topic_ids(options: OptionValues) -> dict[str, str]:
    value = options.text(_TOPIC_IDS)
    if value is None:
        return {}
    allowed = 'JSON such as {"orders":"Yt1hSGvuQFW1XJcKgl0wfw"}, as kafka-topics --describe shows'
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionError(_TOPIC_IDS, value, allowed)
    try:
        return {topic: read_topic_id(write_topic_id(str(found[topic]))) for topic in found}
    except KafkaLogError:
        raise OptionError(_TOPIC_IDS, value, allowed) from None
