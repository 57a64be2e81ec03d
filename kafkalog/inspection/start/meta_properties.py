"""The files meta.properties of a node's log directories, which a broker compares with each other.

Rules: docs/format.md F962 and F963.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterator
from shlex import quote

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeDirectory, NodeFiles
from kafkalog.inspection.start.reasons import Reason

# So many of the first ids.
_RESERVED_IDS = 100


def meta_reasons(node: NodeFiles, image: MetadataImage | None) -> Iterator[Reason]:
    """Yield why the files do not belong together, in the order of the directories."""
    if not node.is_of_kraft:
        yield from _zookeeper_reasons(node)
        return
    yield from _doubled_ids(node, image)
    for each in node.directories:
        if each.meta_error is not None:
            yield _unreadable(node, each, image)
            continue
        if each.meta is None:
            yield _reason(node, each, image, _missing_words(each))
            continue
        yield from _field_reasons(node, each, image)
        if each.directory_id is not None and _is_reserved(each.directory_id):
            detail = f"its directory.id {each.directory_id} is one that Kafka keeps for itself"
            yield _reason(node, each, image, detail)
    yield from _places_of_metadata(node)


def _unreadable(node: NodeFiles, each: NodeDirectory, image: MetadataImage | None) -> Reason:
    # Without the directory of the metadata a broker ends before it uses any.
    ends = node.is_of_kraft and each is node.metadata_directory
    return _reason(node, each, image, f"it cannot be read: {each.meta_error}", ends)


def _doubled_ids(node: NodeFiles, image: MetadataImage | None) -> Iterator[Reason]:
    seen: dict[str, str] = {}
    for each in node.directories:
        if each.meta_error is None and each.directory_id is not None:
            other = seen.setdefault(each.directory_id, each.path)
            if other != each.path:
                detail = f"it has the directory.id {each.directory_id} of {other} too"
                yield _reason(node, each, image, detail)


def _is_reserved(directory_id: str) -> bool:
    return int.from_bytes(urlsafe_b64decode(f"{directory_id}=="), "big") < _RESERVED_IDS


def _missing_words(directory: NodeDirectory) -> str:
    if not directory.is_there:
        return (
            "the log directory does not exist: is its disk mounted? If it is lost, format it: its "
            "partitions begin empty then, and run this command again before the start"
        )
    return "it is missing"


def _field_reasons(
    node: NodeFiles, each: NodeDirectory, image: MetadataImage | None
) -> Iterator[Reason]:
    if each.node_id is None:
        yield _reason(node, each, image, "it has no node.id")
    elif each.node_id != node.node_id:
        yield _reason(node, each, image, f"it is of node {each.node_id}, not {node.node_id}")
    if each.cluster_id is None:
        yield _reason(node, each, image, "it has no cluster.id")
    elif each.cluster_id != node.cluster_id:
        detail = f"it is of cluster {each.cluster_id}, not {node.cluster_id}"
        yield _reason(node, each, image, detail)


def _places_of_metadata(node: NodeFiles) -> Iterator[Reason]:
    """Yield where a copy of the metadata is in a directory that is not configured for it."""
    main = node.metadata_directory
    for each in node.directories:
        if each.has_metadata and each is not main and main is not None:
            path = os.path.join(each.path, METADATA_DIR)
            detail = (
                f"the metadata is expected in {main.path}: metadata.log.dir, or the first of "
                "log.dirs, names another directory than before"
            )
            where = node.server.path if node.server is not None else "server.properties"
            # A broker takes another spelling of the directory for another directory.
            spelled = node.server.spellings if node.server is not None else {}
            name = spelled.get(os.path.realpath(each.path), [each.path])[0]
            line = f"echo metadata.log.dir={quote(name)} >> {quote(where)}"
            yield Reason(path, detail, line, each.path)


def _zookeeper_reasons(node: NodeFiles) -> Iterator[Reason]:
    """Yield what a broker with ZooKeeper refuses: other ids than those of its other files."""
    yield from _doubled_ids(node, None)
    for each in node.directories:
        if each.meta_error is not None:
            yield _unreadable(node, each, None)
            continue
        if each.meta and each.node_id is not None and each.node_id != node.node_id:
            detail = f"it is of broker {each.node_id}, not {node.node_id}"
            yield Reason(each.meta_path, detail, written_meta(node, each, None), each.path)
        if each.meta and each.cluster_id is not None and each.cluster_id != node.cluster_id:
            detail = f"it is of cluster {each.cluster_id}, not {node.cluster_id}"
            yield Reason(each.meta_path, detail, written_meta(node, each, None), each.path)


def _reason(
    node: NodeFiles,
    each: NodeDirectory,
    image: MetadataImage | None,
    detail: str,
    ends_process: bool = True,
) -> Reason:
    return Reason(each.meta_path, detail, written_meta(node, each, image), each.path, ends_process)


def written_meta(node: NodeFiles, each: NodeDirectory, image: MetadataImage | None) -> str:
    """Return the line that writes the file as it has to be; the id of the directory is the one
    that the metadata assigns the partitions in it to."""
    other_node = id_of_all(node)
    if other_node is not None and node.server is not None:
        name, wrong = "node.id" if node.is_of_kraft else "broker.id", node.server.node_id
        edits = [r"/^\s*(node|broker)\.id\s*[=:]/d", f"$a {name}={other_node}"]
        if wrong in node.server.voters:
            edits.append(rf"/^\s*controller\.quorum\.voters/s/\b{wrong}@/{other_node}@/")
        script = " ".join(f"-e {quote(each)}" for each in edits)
        return f"sed -E -i {script} {quote(node.server.path)}  # all log directories are of it"
    if not node.is_of_kraft:
        lines = ["version=0", f"broker.id={node.node_id}", f"cluster.id={node.cluster_id}"]
        return _printed(lines, each)
    directory_id = assigned_id(node, each, image)
    lines = ["version=1", f"cluster.id={node.cluster_id}", f"node.id={node.node_id}"]
    if directory_id is None or not each.is_there:
        where = node.server.path if node.server is not None else "server.properties"
        return f"kafka-storage.sh format --ignore-formatted -t {node.cluster_id} -c {quote(where)}"
    return _printed([*lines, f"directory.id={directory_id}"], each)


def id_of_all(node: NodeFiles) -> int | None:
    """Return the other node that all log directories are of; None without one. Then the setting is
    wrong, not they."""
    own = {each.node_id for each in node.directories if each.node_id is not None}
    if node.server is None or len(own) != 1 or own == {node.server.node_id}:
        return None
    return min(own)


def _printed(lines: list[str], each: NodeDirectory) -> str:
    text = "".join(f"{line}\\n" for line in lines)
    return f"printf {quote(text)} > {quote(each.meta_path)}"


def assigned_id(node: NodeFiles, each: NodeDirectory, image: MetadataImage | None) -> str | None:
    """Return the directory id that the metadata assigns most partitions in a directory to. Without
    one of these, it is the one that the broker has registered and no other directory has."""
    if image is None or node.node_id is None:
        return each.directory_id
    found: Counter[str] = Counter()
    for entry, name in each.partitions():
        row = image.tables["partition"].get((each.topic_id(entry.path), name.partition))
        if row is not None and name.mark is None and node.node_id in row["replicas"]:
            found[row["directories"][row["replicas"].index(node.node_id)]] += 1
    if found:
        return found.most_common(1)[0][0]
    broker = image.tables["broker"].get((node.node_id,))
    others = {other.directory_id for other in node.directories if other is not each}
    left = [each_id for each_id in (broker or {}).get("log_dirs", ()) if each_id not in others]
    return left[0] if len(left) == 1 else None
