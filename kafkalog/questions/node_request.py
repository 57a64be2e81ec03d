"""Which node `kafkalog recover` judges: options as the question takes them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkalog.coordination.metadata.releases import started_release
from kafkalog.inspection.start.permissions import BrokerUser
from kafkalog.questions.node_start import NodeRequest
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.server_properties import ServerProperties
from kafkalog.views.options.config_files import ConfigSources


def node_request(configs: ConfigSources, kafka: str | None, user: str | None) -> NodeRequest:
    """Return the request of --server-properties, --kafka and --user. Raises OptionError for a file,
    a version or a user that there is not."""
    started_release(kafka)
    server = None
    path = configs.server_properties
    if path is not None and os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            server = ServerProperties.of(path, file.read())
        if not server.names_a_node:
            # Some settings of topics only, as other commands take them.
            server = None
    return NodeRequest(kafka, server, None if user is None else BrokerUser.named(user))


def without_missing(paths: Sequence[str], server: ServerProperties | None) -> list[str]:
    """Return the paths without the log directories of server.properties that do not exist: a node
    is judged without them. Paths that are all missing stay, for the error about them."""
    if server is None:
        return list(paths)
    named = {os.path.realpath(path) for path in (*server.log_dirs, server.metadata_dir)}
    there = [
        path
        for path in paths
        if is_remote(path) or os.path.exists(path) or os.path.realpath(path) not in named
    ]
    return there or list(paths)
