"""The names in a log directory. Rules: docs/format.md F90 to F94."""

from __future__ import annotations

import re
from dataclasses import dataclass

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"
# The id of this topic in every cluster: docs/format.md F770.
METADATA_TOPIC_ID = "A" * 21 + "Q"
REMOTE_LOG_METADATA = "__remote_log_metadata"
INTERNAL_TOPICS = frozenset(
    (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, CLUSTER_METADATA)
)
# Those, and the one of tiered storage: brokers create them with settings of their own.
BROKERS_TOPICS = INTERNAL_TOPICS | {REMOTE_LOG_METADATA}

# The checkpoints at the top of a log directory: an offset for each partition.
LOG_STARTS = "log-start-offset-checkpoint"
REPLICATION_OFFSETS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"

# The longest name in a file system.
NAME_BYTES = 255
_OFFSET_DIGITS = 20
_LARGEST_PARTITION = 2**31 - 1
_PARTITION_DIR = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")
# A directory marked for deletion, or one that is not in use yet: its topic name may be shortened.
_MARKED_DIR = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]{1,10})\.[0-9a-f]{32}-(?P<mark>delete|stray|future)"
)
# As a broker takes a name apart.
_BROKER_MARKS = ("-delete", "-future", "-stray")
_BROKER_MARKED = re.compile(r"\S+-\S+\.\S+-(?P<mark>delete|future|stray)")
_BROKER_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\+?[0-9]{1,10})", re.DOTALL)
# Tiered storage puts a segment's id after the offset.
_ANY_LOG_FILE = re.compile(
    r"(?P<base_offset>[0-9]{20})(-[A-Za-z0-9_-]{22})?\.log(\.(deleted|cleaned|swap))?"
)
_SEGMENT_FILE = re.compile(
    r"(?P<stem>(?P<base_offset>[0-9]{20})(-[A-Za-z0-9_-]{22})?)"
    r"(?P<kind>\.log|\.index|\.timeindex|\.txnindex)(?P<mark>\.deleted|\.cleaned|\.swap)?"
)
_SNAPSHOT = re.compile(r"(?P<base_offset>[0-9]{20})\.snapshot")
# Kafka 0.7 and before, by the documents; some versions of these have a dash here.
_OLDEST_PARTITION_DIR = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})[_-](?P<partition>[0-9]{1,10})"
)
_OLDEST_FILE = re.compile(r"(?P<base_offset>[0-9]{11,20})\.kafka")
_MARKS = (".deleted", ".cleaned", ".swap", "-delete", "-stray", "-future")


@dataclass(frozen=True, slots=True)
class PartitionName:
    """Topic and partition by a directory's name; `mark` is delete, stray or future, if any."""

    topic: str
    partition: int
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class SegmentFileName:
    """A log file's or an index's name: `stem`, `kind` (.log, .index, .timeindex or .txnindex) and
    `mark` (.deleted, .cleaned, .swap or nothing). Files of one segment share stem and mark."""

    stem: str
    base_offset: int
    kind: str
    mark: str


def segment_file_name(file_name: str) -> SegmentFileName | None:
    """Return the parts of a file name in a partition's directory, None if it is not a log or an
    index."""
    match = _SEGMENT_FILE.fullmatch(file_name)
    base_offset = _offset(match)
    if match is None or base_offset is None:
        return None
    return SegmentFileName(match["stem"], base_offset, match["kind"], match["mark"] or "")


def partition_name(directory_name: str) -> PartitionName | None:
    """Return the parts of a directory's name, None if it is not a partition's.

    The partition follows the last dash: topics may contain dashes and dots themselves.
    """
    for pattern in (_MARKED_DIR, _PARTITION_DIR):
        match = pattern.fullmatch(directory_name)
        if match and int(match["partition"]) <= _LARGEST_PARTITION:
            return PartitionName(
                match["topic"], int(match["partition"]), match.groupdict().get("mark")
            )
    return None


def broker_partition_name(directory_name: str) -> PartitionName | None:
    """Return the parts of a directory's name as a broker of any version takes them, None for one
    that it does not take for a partition's: legal names of topics do not matter. Rule: F960."""
    name, mark = directory_name, None
    if name.endswith(_BROKER_MARKS):
        match = _BROKER_MARKED.fullmatch(name)
        if match is None:
            return None
        name, mark = name[: name.rindex(".")], match["mark"]
    match = _BROKER_PARTITION.fullmatch(name)
    if match is None or int(match["partition"]) > _LARGEST_PARTITION:
        return None
    return PartitionName(match["topic"], int(match["partition"]), mark)


def cut_topic(topic: str, ending: str) -> str:
    """Return as much of a topic's name as fits into a directory with this ending. Rule: F94."""
    return topic[: NAME_BYTES - len(ending)]


def segment_base_offset(file_name: str) -> int | None:
    """Return the base offset of a live segment's log file, None for every other file."""
    digits, ending = file_name[:_OFFSET_DIGITS], file_name[_OFFSET_DIGITS:]
    # Asked of every name in a listing: an expression takes five times as long.
    if ending != ".log" or not (digits.isdecimal() and digits.isascii()):
        return None
    offset = int(digits)
    return offset if len(digits) == _OFFSET_DIGITS and offset < 2**63 else None


def any_base_offset(file_name: str) -> int | None:
    """Return the base offset in the name of a log file that may be marked as deleted, cleaned or
    swap."""
    return _offset(_ANY_LOG_FILE.fullmatch(file_name))


def _offset(match: re.Match[str] | None) -> int | None:
    """Return the offset in a name; twenty digits can exceed the largest offset."""
    offset = int(match["base_offset"]) if match else None
    return None if offset is None or offset >= 2**63 else offset


def snapshot_offset(file_name: str) -> int | None:
    """Return the offset in the name of a producer snapshot, None for every other file."""
    return _offset(_SNAPSHOT.fullmatch(file_name))


def oldest_partition_name(directory_name: str) -> PartitionName | None:
    """Return the parts of the name of a directory with files of the oldest layout (docs/format.md
    F154)."""
    match = _OLDEST_PARTITION_DIR.fullmatch(directory_name)
    if match is None or int(match["partition"]) > _LARGEST_PARTITION:
        return None
    return PartitionName(match["topic"], int(match["partition"]))


def oldest_base_offset(file_name: str) -> int | None:
    """Return the offset in the name of a file of the oldest layout, None for every other file."""
    return _offset(_OLDEST_FILE.fullmatch(file_name))


def is_marked(name: str) -> bool:
    """Return whether a file's or a directory's name, or a glob for one, ends in a mark for deletion
    or for files not in use yet."""
    return name.endswith(_MARKS)
