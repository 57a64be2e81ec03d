"""Names of directories in a log directory that a broker does not take.

Rule: docs/format.md F960.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeDirectory
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.log_dir.other_entries import INDEX_CACHE
from kafkalog.storage.names import broker_partition_name


def refused_directories(directory: NodeDirectory) -> Iterator[Reason]:
    """Yield the directories whose names end a broker that lists the log directory."""
    for entry in directory.folders:
        if entry.name in (INDEX_CACHE, METADATA_DIR) or broker_partition_name(entry.name):
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
