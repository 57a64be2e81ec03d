"""Where the settings of topics and brokers come from: files on the driver's machine, and the
cluster's own records."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafkalog.errors import OptionError
from kafkalog.storage.log_dir.topic_configs import (
    SERVER_PROPERTIES,
    TOPIC_CONFIG,
    ZOOKEEPER,
    TopicConfigs,
    read_topic_configs,
)
from kafkalog.storage.names import BROKERS_TOPICS, CLUSTER_METADATA
from kafkalog.views.options.option_values import OptionValues

if TYPE_CHECKING:
    from kafkalog.storage.partition_log import PartitionLog

CHROOT = "chroot"
CONFIG_OPTIONS = (SERVER_PROPERTIES, TOPIC_CONFIG, ZOOKEEPER, CHROOT)


@dataclass(frozen=True, slots=True)
class ConfigSources:
    """The given files, each of which is optional, and ZooKeeper's data directories."""

    server_properties: str | None = None
    topic_config: str | None = None
    zookeeper: tuple[str, ...] = ()
    chroot: str | None = None

    @classmethod
    def of_options(cls, options: OptionValues) -> ConfigSources:
        """Return those of the source's options. Raises OptionError."""
        return cls(
            options.text(SERVER_PROPERTIES),
            options.text(TOPIC_CONFIG),
            options.path_list(ZOOKEEPER),
            options.text(CHROOT),
        )

    def with_settings(
        self, settings: Mapping[str, str], logs: Iterable[PartitionLog], named: Iterable[str] = ()
    ) -> ConfigSources:
        """Return them with settings of the named topics, which win; without a name of all topics
        that these logs are of, but not of those of brokers. Raises as `given` does."""
        if not settings:
            return self
        names = {log.topic for log in logs if log.topic is not None}
        chosen = set(named) or names - {*BROKERS_TOPICS, CLUSTER_METADATA}
        topics = {name: dict(own) for name, own in (self.given().topics or {}).items()}
        for name in chosen:
            topics[name] = {**topics.get(name, {}), **settings}
        return replace(self, topic_config=json.dumps(topics))

    def options(self) -> dict[str, str]:
        """Return them as options of the source. Raises OptionError, as the source does, for a file
        that does not exist or has another form, and LogDirError for no data directory."""
        self.given()
        found = {
            SERVER_PROPERTIES: self.server_properties,
            TOPIC_CONFIG: self.topic_config,
            ZOOKEEPER: json.dumps(self.zookeeper) if self.zookeeper else None,
            CHROOT: self.chroot,
        }
        return {option: value for option, value in found.items() if value is not None}

    def given(self) -> TopicConfigs:
        """Read the settings of the two files. Raises OptionError for a file that is missing or
        malformed, and LogDirError for data directories without ZooKeeper's files."""
        from kafkalog.zookeeper.data_dir import find_data_dirs

        find_data_dirs(self.zookeeper)
        return read_topic_configs(
            _file_text(TOPIC_CONFIG, self.topic_config),
            _file_text(SERVER_PROPERTIES, self.server_properties),
        )

    def of_files(self) -> Callable[[PartitionLog], TopicConfigs]:
        """Return what gives the settings of the two files for any log. Raises as `given` does."""
        given = self.given()
        return lambda log: given

    def of_logs(self, found: Iterable[PartitionLog]) -> Callable[[PartitionLog], TopicConfigs]:
        """Return what gives the settings that count for a log: those of the two files, then those
        in ZooKeeper and in the `__cluster_metadata` among the logs that were found.

        Raises as `given` does. Rule: docs/format.md F169.
        """
        from kafkalog.inspection.metadata.recorded_configs import metadata_configs
        from kafkalog.inspection.zookeeper.cluster_trees import zookeeper_configs

        logs = list(found)
        given, recorded = self.given(), metadata_configs(logs)
        ids = {log.log_dir.cluster_id for log in logs}
        in_zookeeper = zookeeper_configs(self.zookeeper, ids, self.chroot)

        def of_log(log: PartitionLog) -> TopicConfigs:
            # A cluster that has migrated to KRaft leaves its old settings in ZooKeeper.
            own = recorded.get(log.log_dir.cluster_id, in_zookeeper)
            return given if own is None else given.with_recorded(own, log.log_dir.broker_id)

        return of_log


def _file_text(option: str, path: str | None) -> str | None:
    from kafkalog.storage.files.files import read_text

    # `with_settings` has a JSON object in the place of a file with one.
    if path is None or path.startswith("{"):
        return path
    if not os.path.isfile(path):
        raise OptionError(option, path, "a file on the machine of the driver")
    return read_text(path)
