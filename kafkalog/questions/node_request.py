"""What `kafkalog recover` and job plan-recovery judge: options as the question takes them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from kafkalog.coordination.metadata.releases import started_release
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.inspection.start.permissions import BrokerUser
from kafkalog.questions.node_start import NodeRequest
from kafkalog.questions.recovery import RecoveryRequest
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.jars import Jars
from kafkalog.storage.log_dir.server_properties import ServerProperties
from kafkalog.views.options.recovery_options import RecoveryOptions


def recovery_request(
    given: RecoveryOptions, topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> RecoveryRequest:
    """Return the request of the options, for rows of these topics and partitions, all without.
    Raises OptionError for a file, a version, a user or a directory that there is not."""
    started_release(given.kafka)
    server = None
    path = given.configs.server_properties
    if path is not None and os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            server = ServerProperties.of(path, file.read())
        if not server.names_a_node:
            # Some settings of topics only, as other commands take them.
            server = None
    user = None if given.user is None else BrokerUser.named(given.user)
    return RecoveryRequest(
        given.shutdown,
        given.index_interval_bytes,
        time.time_ns() // 1_000_000 if given.as_of is None else given.as_of,
        NodeRequest(
            *(given.kafka, server, user, _jars(given.libs, server)),
            *(given.configs.zookeeper, given.configs.chroot),
        ),
        given.configs.options(),
        topics=topics,
        partitions=partitions,
    )


def _jars(libs: Sequence[str], server: ServerProperties | None) -> Jars | None:
    if not libs:
        return None
    if server is None:
        words = "it needs --server-properties of the node, whose classes it looks for"
        raise RefusedOptionError("--libs", words)
    try:
        return Jars.in_directories(libs)
    except OSError as error:
        words = f"a directory with jars ({error.strerror})"
        raise OptionError("--libs", error.filename, words) from None


def without_missing(paths: Sequence[str], server: ServerProperties | None) -> list[str]:
    """Return the paths without the log directories of server.properties that do not exist, that are
    files, or that have nothing in them: a node is judged without them. Paths that are all so stay,
    for the error about them."""
    if server is None:
        return list(paths)
    named = {os.path.realpath(path) for path in (*server.log_dirs, server.metadata_dir)}
    there = [
        path
        for path in paths
        if is_remote(path) or os.path.realpath(path) not in named or _has_entries(path)
    ]
    return there or list(paths)


def _has_entries(path: str) -> bool:
    """Return whether a path is a directory with something in it, or one that cannot be listed."""
    try:
        return bool(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
