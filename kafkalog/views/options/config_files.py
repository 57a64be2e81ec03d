"""Files with the settings of topics and brokers, on the driver's machine."""

from __future__ import annotations

import os

from kafkalog.errors import OptionError
from kafkalog.storage.files.files import read_text
from kafkalog.storage.log_dir.topic_configs import (
    SERVER_PROPERTIES,
    TOPIC_CONFIG,
    TopicConfigs,
    read_topic_configs,
)


def topic_configs(topic_config: str | None, server_properties: str | None) -> TopicConfigs:
    """Read the settings of the two files, each of which is optional.

    Raises OptionError for a file that is missing or malformed.
    """
    return read_topic_configs(
        _file_text(TOPIC_CONFIG, topic_config), _file_text(SERVER_PROPERTIES, server_properties)
    )


def config_file_options(server_properties: str | None, topic_config: str | None) -> dict[str, str]:
    """Return the files as options of the source. Raises OptionError, as the source does, for a file
    that does not exist or has another form."""
    topic_configs(topic_config, server_properties)
    files = {SERVER_PROPERTIES: server_properties, TOPIC_CONFIG: topic_config}
    return {option: path for option, path in files.items() if path is not None}


def _file_text(option: str, path: str | None) -> str | None:
    if path is None:
        return None
    if not os.path.isfile(path):
        raise OptionError(option, path, "a file on the machine of the driver")
    return read_text(path)
