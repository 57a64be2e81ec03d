"""The commits to ZooKeeper that ZooKeeper's own log formatter printed_commits."""

import re
from pathlib import Path

PRINTED = re.compile(
    r"zxid (0x[0-9a-f]+) (?:create|setData) "
    r"'/consumers/([^/]+)/offsets/([^/]+)/(\d+),#([0-9a-f]*),"
)


Commit = tuple[int, str, str, int, int]


def printed_commits(folder: Path) -> set[Commit]:
    """zxid, group, topic, partition and offset of every write."""
    return {
        (int(zxid, 16), group, topic, int(partition), int(bytes.fromhex(data)))
        for path in (folder / "golden" / "zk").glob("log.*.txt")
        for zxid, group, topic, partition, data in PRINTED.findall(path.read_text())
    }
