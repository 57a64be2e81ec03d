"""Where the cluster's metadata says that partitions are, and those that are not there.

Rule: docs/format.md F890.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkalog.coordination.metadata.codes import MIGRATING, UNASSIGNED
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.metadata.copies import (
    MetadataCopy,
    best_copy,
    copies_by_cluster,
    directory_id_of,
)
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.log_lines import logger
from kafkalog.storage.files.files import readable_entries
from kafkalog.storage.log_dir.other_entries import (
    MOST_ABSENT,
    absent_partitions,
    directory_of,
    given_log_dirs,
    is_unreadable,
    partitions_here,
)
from kafkalog.storage.names import CLUSTER_METADATA, PartitionName, cut_topic, partition_name
from kafkalog.storage.partition_log import LogDir, PartitionLog, is_selected
from kafkalog.words import counted, first_names, printable

_logger = logger(__name__)
_FUTURE = "future"
Images = Mapping[str | None, MetadataImage]


class Assignment(NamedTuple):
    """The broker that leads a partition, None where none does, as after a clean stop of all, and
    those that have replicas of it."""

    leader: int | None
    replicas: tuple[int, ...]


def missing_replica_lines(
    paths: Sequence[str],
    logs: Sequence[PartitionLog],
    images: Images,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
) -> Iterator[str]:
    """Yield a line for each log directory that lacks partitions which the metadata assigns to it,
    but for those that its checkpoints name; of the given topics and partitions, if any. `logs` are
    all that were found under the paths, `images` their `cluster_images`."""
    named = dict(absent_partitions(paths, logs))
    here = partitions_here(logs)
    listed = {log.path for log in logs}
    for path, log_dir in sorted(given_log_dirs(paths, logs).items()):
        image = images.get(log_dir.cluster_id)
        if image is None or log_dir.broker_id is None:
            continue
        arriving = _arriving(path)
        names = [
            f"{topic}-{partition}"
            for topic, partition in sorted(_assigned(image, log_dir))
            if (topic, partition) not in here[path]
            and (topic, partition) not in named.get(path, ())
            and is_selected(topic, partition, topics, partitions)
            # A directory that was read and is not here has a former topic (docs/format.md F925).
            and (
                directory_of(path, (topic, partition)) in listed
                or not is_unreadable(path, (topic, partition))
            )
            and _arriving_name(topic, partition) not in arriving
        ]
        if names:
            yield printable(
                f"missing: {counted(len(names), 'partition')} that the cluster's metadata assigns "
                f"to {path}: {first_names(names, MOST_ABSENT)}"
            )


def assignments(images: Images) -> dict[tuple[str | None, str, int], Assignment]:
    """Return the assignments of all partitions, by cluster id, topic and number."""
    return {
        (cluster_id, topic, partition): Assignment(
            row["leader"] if row["leader"] >= 0 else None, tuple(row["replicas"])
        )
        for cluster_id, image in images.items()
        for (topic_id, partition), row in image.tables["partition"].items()
        if (topic := image.topic_of("topic", (topic_id,))) is not None
    }


def assigned_directory(
    image: MetadataImage, place: tuple[str | None, int], node_id: int
) -> str | None:
    """Return the id of the directory that a partition of this topic id and number has on a node;
    None where the node has no replica of it."""
    row = image.tables["partition"].get(place)
    if row is None or node_id not in row["replicas"]:
        return None
    return str(row["directories"][row["replicas"].index(node_id)])


def cluster_images(
    logs: Sequence[PartitionLog],
    chosen: Callable[[Sequence[MetadataCopy]], MetadataCopy] = best_copy,
) -> Images:
    """Return by cluster id the image at the end of the best copy among logs that have been found,
    or of the one that is `chosen`; a cluster without one that can be read is missing."""
    images = {}
    for cluster_id, copies in copies_by_cluster(logs).items():
        try:
            images[cluster_id] = image_at(chosen(copies).log).image
        except (CorruptDataError, LogDirError) as error:
            _logger.warning("no assignments from %s: %s", CLUSTER_METADATA, error)
    return images


def _assigned(image: MetadataImage, log_dir: LogDir) -> Iterator[TopicPartition]:
    """Yield the partitions whose replica is in this directory: by the directory's id, or, where the
    replica has none, as the only directory of its broker. One that failed keeps its replicas, but
    is none of the broker's any more."""
    own = _directory_id(log_dir.path)
    broker = image.tables["broker"].get((log_dir.broker_id,))
    is_only = broker is not None and broker["log_dirs"] == [own]
    for (topic_id, partition), row in image.tables["partition"].items():
        if log_dir.broker_id not in row["replicas"]:
            continue
        place = row["directories"][row["replicas"].index(log_dir.broker_id)]
        if own is not None and (place == own or (is_only and place in (MIGRATING, UNASSIGNED))):
            topic = image.topic_of("topic", (topic_id,))
            if topic is not None:
                yield topic, partition


def _arriving(path: str) -> set[PartitionName]:
    """Return the replicas that are being moved into this directory: the metadata can name it before
    the broker gives them their names."""
    names = (partition_name(entry.name) for entry in readable_entries(path))
    return {name for name in names if name is not None and name.mark == _FUTURE}


def _arriving_name(topic: str, partition: int) -> PartitionName:
    ending = f"-{partition}.{'0' * 32}-{_FUTURE}"
    return PartitionName(cut_topic(topic, ending), partition, _FUTURE)


def _directory_id(path: str) -> str | None:
    try:
        return directory_id_of(path)
    except CorruptDataError:
        return None
