"""Names of directories in a log directory that a broker does not take.

Rule: docs/format.md F960.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeDirectory
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.log_dir.other_entries import INDEX_CACHE

_MARKS = ("-delete", "-future", "-stray")
_MARKED = re.compile(r"\S+-\S+\.\S+-(delete|future|stray)")
_PARTITION = re.compile(r".+-[+-]?[0-9]{1,10}", re.DOTALL)


def is_partition_to_a_broker(name: str) -> bool:
    """Return whether a broker takes the name of a directory for a partition's."""
    if name.endswith(_MARKS):
        if not _MARKED.fullmatch(name):
            return False
        name = name[: name.rindex(".")]
    return _PARTITION.fullmatch(name) is not None and int(name[name.rindex("-") + 1 :]) < 2**31


def refused_directories(directory: NodeDirectory) -> Iterator[Reason]:
    """Yield the directories whose names end a broker that lists the log directory."""
    for entry in directory.folders:
        if entry.name in (INDEX_CACHE, METADATA_DIR) or is_partition_to_a_broker(entry.name):
            continue
        detail = (
            "it is not a partition: a broker ends at a directory that is not named TOPIC-NUMBER"
        )
        line = move_away(entry.path, directory.path)
        yield Reason(entry.path, detail, line, directory.path)


def files_in_the_way(
    directory: NodeDirectory, image: MetadataImage | None, node_id: int | None
) -> Iterator[Reason]:
    """Yield the files in the place of partitions' directories: a broker cannot make these, which
    takes the log directory offline."""
    if image is None or node_id is None:
        return
    assigned = {
        f"{image.topic_of('topic', (topic_id,))}-{number}"
        for (topic_id, number), row in image.tables["partition"].items()
        if node_id in row["replicas"]
    }
    for entry in directory.files:
        if entry.name in assigned:
            detail = "a file is where the directory of a partition has to be"
            line = move_away(entry.path, directory.path)
            yield Reason(entry.path, detail, line, directory.path, False)
