"""What kcat prints of topics."""

import re
import subprocess
from collections.abc import Collection, Iterator

from tests.support.serve.clients import Row, placed

# Sizes come first, -1 for null: keys and values have any bytes. Headers are left out.
_FORMAT = r"%t %p %o %T %K %S\n%k%s"
_HEAD = re.compile(rb"(\S+) (\d+) (\d+) (-?\d+) (-?\d+) (-?\d+)\n")
_READ_SECONDS = 100


def records_of_kcat(
    bootstrap_servers: str, isolation_level: str, topics: Collection[str]
) -> list[Row]:
    """What kcat reads of these topics to the end of each partition, without headers."""
    rows: list[Row] = []
    for topic in sorted(topics):
        command = ["kcat", "-C", "-q", "-e", "-b", bootstrap_servers, "-t", topic, "-f", _FORMAT]
        command += ["-o", "beginning", "-X", f"isolation.level={isolation_level}"]
        done = subprocess.run(command, capture_output=True, timeout=_READ_SECONDS)
        assert done.returncode == 0, done.stderr.decode()
        rows += _rows(done.stdout)
    return placed(rows)


def _rows(printed: bytes) -> Iterator[Row]:
    position = 0
    while position < len(printed):
        head = _HEAD.match(printed, position)
        assert head is not None, printed[position : position + 100]
        position = head.end()
        fields: list[bytes | None] = []
        for size in map(int, head.group(5, 6)):
            fields.append(printed[position : position + size] if size >= 0 else None)
            position += max(size, 0)
        place = (head[1].decode(), int(head[2]), int(head[3]))
        yield (*place, int(head[4]), fields[0], fields[1], ())
