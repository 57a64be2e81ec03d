"""The rules of a log directory that salvage writes: which logs go into it, which of them are
compacted, and the files at its top. Rules: docs/format.md F180, F184 and F252 to F254.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote

from kafkalog.errors import (
    ConflictingOptionsError,
    CorruptDataError,
    LogDirError,
    OptionError,
    RefusedOptionError,
    UnsupportedFormatError,
)
from kafkalog.format.side_files.checkpoints import (
    TopicPartition,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from kafkalog.storage.files.files import list_directory, read_text
from kafkalog.storage.files.output_files import write_file
from kafkalog.storage.log_dir.deleted_logs import UNDELETED_MARKS
from kafkalog.storage.log_dir.log_dir import META_PROPERTIES
from kafkalog.storage.log_dir.segment_files import MARKED_DIRECTORIES
from kafkalog.storage.log_dir.topic_configs import TopicConfigs
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    CLUSTER_METADATA,
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    PartitionName,
    partition_name,
)
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.words import printable

# The new checkpoints: everything salvaged is on disk and was on all known replicas.
_NEW_CHECKPOINTS = (RECOVERY_POINTS, REPLICATION_OFFSETS)
_METADATA_ADVICE = (
    "a controller's log is more than its segments: copy the directory as it is, or get it from "
    "another controller"
)


def salvageable(logs: Iterable[PartitionLog]) -> list[PartitionLog]:
    """Return the logs that a broker serves; a controller's own log is more than its segments.

    Raises LogDirError for logs of several log directories: they belong into as many new ones;
    UnsupportedFormatError for files of the oldest layout.
    """
    chosen = [log for log in logs if log.is_live and log.topic != CLUSTER_METADATA]
    places = sorted({log.log_dir.path for log in chosen})
    if len(places) != 1:
        found = ", ".join(places) or "no partition"
        raise LogDirError(f"one log directory is salvaged at a time, found {found}")
    oldest = next(filter(is_oldest_layout, chosen), None)
    if oldest is not None:
        raise UnsupportedFormatError(
            f"{oldest.path} has files of Kafka 0.7's layout, which no current broker opens: view "
            "records reads what is sound in them"
        )
    return chosen


def left_out_lines(found: Iterable[PartitionLog]) -> Iterator[str]:
    """Yield a line for each partition directory in the input's log directories that salvage does
    not write, and what to do with it."""
    logs = [log for log in found if not log.is_named]
    for log in logs:
        if log.topic == CLUSTER_METADATA:
            yield printable(f"left out: {log.path}: {_METADATA_ADVICE}")
    for path in sorted({log.log_dir.path for log in logs}):
        for entry in list_directory(path):
            name = partition_name(entry.name) if entry.is_directory else None
            if name is not None and name.mark:
                yield printable(f"left out: {entry.path}: {_what_to_do(path, name)}")


def _what_to_do(log_dir: str, name: PartitionName) -> str:
    what = MARKED_DIRECTORIES[name.mark or ""]
    if name.mark not in UNDELETED_MARKS:
        return what
    return f"{what}; kafkalog undelete {quote(log_dir)} --topic {name.topic} --to NEW copies it"


def compacted_topics(
    logs: Sequence[PartitionLog],
    named: Sequence[str],
    configs: Callable[[PartitionLog], TopicConfigs],
    *,
    by_policy: bool,
) -> dict[str, int]:
    """Return the topics to compact, each with its delete.retention.ms: those named and,
    `by_policy`, those whose cleanup.policy is known to have `compact`.

    Raises OptionError for a name that no log has, and if there is nothing to compact by policy.
    """
    topics = sorted({log.topic for log in logs if log.topic is not None})
    unknown = sorted(set(named) - set(topics))
    if unknown:
        raise OptionError(
            "--compact-topic", ",".join(unknown), f"existing topics: {', '.join(topics)}"
        )
    settings = {log.topic: configs(log).compaction(log.topic) for log in logs if log.topic}
    if by_policy and not named and not any(each.is_compacted for each in settings.values()):
        reason = (
            "no topic has a cleanup.policy with compact: give --topic-config, --server-properties, "
            "--compact-topic or a log directory with __cluster_metadata"
        )
        raise RefusedOptionError("--compact", reason)
    return {
        topic: each.delete_retention_ms
        for topic, each in settings.items()
        if topic in named or (by_policy and each.is_compacted)
    }


def refuse_doubtful(*, keeps_doubtful: bool, compacts: bool) -> None:
    """Raise OptionError for doubtful batches in topics that are compacted: the cleaner reads every
    record, and would leave them out again."""
    if keeps_doubtful and compacts:
        raise ConflictingOptionsError("--keep-doubtful", "--compact or --compact-topic")


def finish_log_dir(
    source: str,
    target: str,
    ends: Mapping[TopicPartition, int],
    cleaned: Mapping[TopicPartition, int] | None = None,
) -> None:
    """Write the files at the top of the new log directory, `ends` being the log end offsets and
    `cleaned` how far those partitions are cleaned that were compacted."""
    for name in _NEW_CHECKPOINTS:
        _write_text(target, name, write_offset_checkpoint(ends))
    # Copied from the source: offsets that are still right, up to the new log's end.
    for name in (LOG_STARTS, CLEANER_OFFSETS):
        offsets = _offsets(os.path.join(source, name))
        if name == CLEANER_OFFSETS:
            offsets = {**offsets, **(cleaned or {})}
        kept = {key: min(offset, ends[key]) for key, offset in offsets.items() if key in ends}
        _write_text(target, name, write_offset_checkpoint(kept))
    copy_properties(source, target)


def copy_properties(source: str, target: str) -> None:
    """Write meta.properties of a log directory into another, if there is one that can be read."""
    with suppress(CorruptDataError):
        properties = read_text(os.path.join(source, META_PROPERTIES))
        if properties is not None:
            _write_text(target, META_PROPERTIES, properties)


def _offsets(path: str) -> Mapping[TopicPartition, int]:
    try:
        return read_offset_checkpoint(read_text(path) or "")
    except CorruptDataError:
        return {}


def _write_text(target: str, name: str, text: str) -> None:
    write_file(os.path.join(target, name), text.encode(), os.fsync)
