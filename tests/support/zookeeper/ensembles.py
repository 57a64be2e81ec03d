"""ZooKeeper data directories with a few znodes in a snapshot, for tests of jobs."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.zookeeper.zookeeper_files import ROOT, Node, snapshot_bytes, write_data_dir

SESSION = 0x1000
CTIME_MS, MTIME_MS = 1_700_000_000_000, 1_700_000_001_000


def write_ensemble(
    folder: Path,
    tree: Mapping[str, str | None],
    *,
    zxid: int = 0x100,
    sessions: tuple[int, ...] = (SESSION,),
) -> Path:
    """A server's dataDir with a snapshot of a tree of paths and data, parents made as needed; ids
    and owners are of SESSION."""
    every = dict(tree)
    for path in tree:
        while path := path.rpartition("/")[0]:
            every.setdefault(path, None)
    nodes = [
        Node(
            path.encode(),
            None if every[path] is None else str(every[path]).encode(),
            czxid=number,
            mzxid=number,
            ctime_ms=CTIME_MS,
            mtime_ms=MTIME_MS,
            ephemeral_owner=SESSION if _is_ephemeral(path, every[path]) else 0,
        )
        for number, path in enumerate(sorted(every, key=lambda path: path.split("/")), start=2)
    ]
    timeouts = dict.fromkeys(sessions, 6_000)
    write_data_dir(folder, {zxid: snapshot_bytes([ROOT, *nodes], timeouts)})
    return folder


def _is_ephemeral(path: str, data: str | None) -> bool:
    return data is not None and ("/ids/" in path or "/owners/" in path)
