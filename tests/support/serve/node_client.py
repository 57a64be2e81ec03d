"""What a consumer written for Node.js gets of partitions: kafkajs."""

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.serve.clients import Row, placed

_SOURCE = Path(__file__).parent / "node"
_INSTALL_SECONDS, _READ_SECONDS = 300, 200


def installed_client(directory: Path) -> Path | None:
    """A copy of the program with its packages, None without npm."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    copy = directory / "node"
    shutil.copytree(_SOURCE, copy)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(command, cwd=copy, check=True, timeout=_INSTALL_SECONDS, capture_output=True)
    return copy / "read.js"


def records_of_kafkajs(
    program: Path, bootstrap_servers: str, isolation_level: str, rows: Sequence[Row]
) -> list[Row]:
    """What kafkajs gets of the partitions of these rows, to their last offsets."""
    lasts: dict[tuple[str, int], int] = {}
    for topic, partition, offset, *_ in rows:
        lasts[topic, partition] = max(lasts.get((topic, partition), 0), offset)
    places = [[topic, partition, last] for (topic, partition), last in lasts.items()]
    given = {"address": bootstrap_servers, "level": isolation_level, "places": places}
    command = ["node", str(program), json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_READ_SECONDS)
    assert done.returncode == 0, done.stderr
    return placed(map(_row, map(json.loads, done.stdout.splitlines())))


def _row(found: list[Any]) -> Row:
    topic, partition, offset, timestamp, key, value, headers = found
    pairs = tuple((name, _bytes(text)) for name, text in headers)
    return (topic, partition, int(offset), int(timestamp), _bytes(key), _bytes(value), pairs)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
