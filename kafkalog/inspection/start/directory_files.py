"""Files at the top of a log directory, and the topics' ids in its partitions, as a broker reads
them when it starts.

Rules: docs/format.md F964, F966 and F967.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import CheckpointRefusal, refusal
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeDirectory, TopicIdFile
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    LOG_STARTS,
    METADATA_TOPIC_ID,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
)
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.recovery.recovery import RecoverySettings, plan_recovery

_WITHOUT = {
    RECOVERY_POINTS: "a broker recovers the logs from their beginning without it",
    LOG_STARTS: "deleted records come back without it, until retention takes them again",
    REPLICATION_OFFSETS: "a leader begins at the end of its log without it",
    CLEANER_OFFSETS: "the cleaner begins at the log start again without it",
}
_WITH_BAD_NUMBER = {
    RECOVERY_POINTS: "a broker takes no line of it, and recovers the logs from their beginning",
    LOG_STARTS: "a broker takes no line of it, and deleted records come back",
    REPLICATION_OFFSETS: "the broker starts, but leads NO partition",
    CLEANER_OFFSETS: "the broker starts, but its cleaner stops for good, for all partitions",
}
_WORDS = 3


def marked_logs(
    directories: Sequence[NodeDirectory], unclean: Collection[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield what a broker meets in the logs of directories that are marked `-future`, `-delete` or
    `-stray`, as rows of view `recovery_plan` have it: it loads them, too. `unclean` are the log
    directories that were not stopped cleanly. Rule: docs/format.md F1396."""
    for directory in (each for each in directories if each.meta_error is None):
        for entry, name in directory.partitions():
            if name.mark is None:
                continue
            plan = plan_recovery(entry.path, RecoverySettings(directory.path not in unclean))
            yield {
                "topic": name.topic,
                "directory": entry.path,
                "start_error": plan.start_error,
                "ends_process": plan.ends_process,
            }


def refused_checkpoints(directory: NodeDirectory) -> Iterator[Reason]:
    """Yield the checkpoints that a broker cannot read: each takes the directory offline, or ends
    the process."""
    for name, path, found in _refusals(directory):
        if not found.is_number:
            line = f"{move_away(path, directory.path)}  # {_WITHOUT[name]}"
            detail = f"a broker cannot read it: {found.detail}"
            yield Reason(path, detail, line, directory.path, found.ends_process)


def ignored_checkpoints(directory: NodeDirectory) -> Iterator[Reason]:
    """Yield the checkpoints with a number that a broker cannot parse. It starts, and keeps the
    directory. Rule: docs/format.md F1181."""
    for name, path, found in _refusals(directory):
        if found.is_number:
            line = move_away(path, directory.path)
            yield Reason(path, f"{_WITH_BAD_NUMBER[name]}: {found.detail}", line, "", False)


def _refusals(directory: NodeDirectory) -> Iterator[tuple[str, str, CheckpointRefusal]]:
    # A directory of the name ends the process (F960).
    folders = {entry.name for entry in directory.folders}
    for name in (each for each in _WITHOUT if each not in folders):
        path = os.path.join(directory.path, name)
        found = _refusal(path)
        if found is not None:
            yield name, path, found


def _refusal(path: str) -> CheckpointRefusal | None:
    try:
        return refusal(read_bytes(path).decode(), _WORDS)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        return CheckpointRefusal(f"position {error.start}: not UTF-8")
    except CorruptDataError as error:
        return CheckpointRefusal(error.detail)


def refused_topic_ids(
    directory: NodeDirectory, topic_ids: Mapping[str, str], *, is_of_kraft: bool
) -> Iterator[Reason]:
    """Yield the files partition.metadata that a broker cannot read. Without a line, or with an id
    that is none, it ends, others take the directory offline; where one is missing, the partition is
    set aside; a broker with ZooKeeper writes it again. `topic_ids` are those that the cluster's
    metadata has."""
    for entry, name in directory.partitions():
        found = directory.topic_ids[entry.path]
        if found.refusal is not None:
            path = os.path.join(entry.path, PARTITION_METADATA)
            line = topic_id_line(path, topic_ids.get(name.topic, "ID"))
            if not is_of_kraft:
                line = move_away(path, directory.path)
            yield Reason(path, found.refusal, line, directory.path, found.ends_process)


def refused_metadata_id(directory: NodeDirectory) -> Iterator[Reason]:
    """Yield the file partition.metadata of the cluster's metadata, if a broker ends at it."""
    folder = os.path.join(directory.path, METADATA_DIR)
    if not directory.has_metadata:
        return
    found = TopicIdFile.read(folder)
    detail = found.refusal
    if detail is None and found.topic_id not in (None, METADATA_TOPIC_ID):
        detail = f"it has the id {found.topic_id}, and that of the metadata is {METADATA_TOPIC_ID}"
    if detail is not None:
        path = os.path.join(folder, PARTITION_METADATA)
        yield Reason(path, detail, topic_id_line(path, METADATA_TOPIC_ID), directory.path)


def topic_id_line(path: str, topic_id: str) -> str:
    """Return the line that writes a topic's id."""
    return f"printf 'version: 0\\ntopic_id: {topic_id}\\n' > {quote(path)}"
