"""The settings of topics and brokers that the records of `__cluster_metadata` hold.

Rule: docs/format.md F169.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.inspection.metadata.copies import MetadataCopy, best_copy, copies_by_cluster
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.topic_configs import RecordedConfigs
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog

_logger = logger(__name__)


def metadata_configs(logs: Iterable[PartitionLog]) -> dict[str | None, RecordedConfigs]:
    """Return by cluster id what the best copy of `__cluster_metadata` among the logs says at its
    end. A copy that cannot be read says nothing, and a warning names it."""
    found = {}
    for cluster_id, of_cluster in copies_by_cluster(logs).items():
        try:
            found[cluster_id] = _configs(best_copy(of_cluster))
        except (CorruptDataError, LogDirError) as error:
            _logger.warning("no settings of topics from %s: %s", CLUSTER_METADATA, error)
    return found


def _configs(copy: MetadataCopy) -> RecordedConfigs:
    replay = image_at(copy.log)
    for damage in replay.damages:
        _logger.warning("%s: settings of topics that it has changed are not known", damage)
    topics: dict[str, dict[str, str]] = {
        str(row["topic"]): {} for row in replay.image.rows("topic")
    }
    brokers: dict[str, dict[str, str]] = {}
    for (resource, name, config), row in replay.image.tables["config"].items():
        settings = {"topic": topics, "broker": brokers}.get(resource)
        if settings is not None:
            settings.setdefault(name, {})[config] = row["value"]
    return RecordedConfigs(topics, brokers)
