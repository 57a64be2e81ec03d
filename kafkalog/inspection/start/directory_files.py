"""Files at the top of a log directory, and the topics' ids in its partitions, as a broker reads
them when it starts.

Rules: docs/format.md F964, F966 and F967.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from shlex import quote

from kafkalog.coordination.metadata.codes import MIGRATING
from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import refusal
from kafkalog.inspection.start.node_directories import NodeDirectory
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.names import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS, REPLICATION_OFFSETS
from kafkalog.storage.partition_log import PARTITION_METADATA

_WITHOUT = {
    RECOVERY_POINTS: "a broker recovers the logs from their beginning without it",
    LOG_STARTS: "deleted records come back without it, until retention takes them again",
    REPLICATION_OFFSETS: "a leader begins at the end of its log without it",
    CLEANER_OFFSETS: "the cleaner begins at the log start again without it",
}
_WORDS = 3
_UUID = re.compile(r"[A-Za-z0-9_-]{22}={0,2}")


def refused_checkpoints(directory: NodeDirectory) -> Iterator[Reason]:
    """Yield the checkpoints that a broker cannot read: each takes the directory offline."""
    for name, consequence in _WITHOUT.items():
        path = os.path.join(directory.path, name)
        detail = _refusal(path)
        if detail is not None:
            line = f"{move_away(path, directory.path)} ({consequence})"
            yield Reason(path, f"a broker cannot read it: {detail}", line, directory.path, False)


def _refusal(path: str) -> str | None:
    try:
        return refusal(read_bytes(path).decode(), _WORDS)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        return f"position {error.start}: not UTF-8"
    except CorruptDataError as error:
        return error.detail


def refused_topic_ids(directory: NodeDirectory, topic_ids: Mapping[str, str]) -> Iterator[Reason]:
    """Yield the files partition.metadata that a broker cannot read. An empty one ends it, others
    take the directory offline; where one is missing, the partition is set aside. `topic_ids` are
    those that the cluster's metadata has."""
    for entry, name in directory.partitions():
        line = topic_id_line(
            os.path.join(entry.path, PARTITION_METADATA), topic_ids.get(name.topic, "ID")
        )
        path = os.path.join(entry.path, PARTITION_METADATA)
        try:
            text = read_bytes(path).decode(errors="replace")
        except FileNotFoundError:
            continue
        except CorruptDataError as error:
            yield Reason(path, error.detail, line, directory.path, False)
            continue
        found = _topic_id_refusal(text)
        if found is not None:
            detail, ends = found
            yield Reason(path, detail, line, directory.path, ends)


def _topic_id_refusal(text: str) -> tuple[str, bool] | None:
    """Return why a broker refuses the text, and whether it ends then."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if not lines:
        return "it is empty, and a broker ends when it reads it", True
    _, *others = lines[0].split() or [""]
    if len(others) != 1 or not re.fullmatch(r"\+?[0-9]{1,10}", others[0]):
        return f"a broker cannot read line 1: {lines[0][:80]!r}", False
    if len(lines) < 2:
        return "it has no topic_id, and a broker ends when it reads it", True
    words = lines[1].split()
    if len(words) != 2:
        return f"a broker cannot read line 2: {lines[1][:80]!r}", False
    if not _UUID.fullmatch(words[1]):
        return f"a broker ends at line 2: {words[1][:80]!r} is not an id", True
    if words[1].startswith(MIGRATING):
        return "a broker refuses the id of zeros", False
    return None


def topic_id_line(path: str, topic_id: str) -> str:
    """Return the line that writes a topic's id."""
    return f"printf 'version: 0\\ntopic_id: {topic_id}\\n' > {quote(path)}"
