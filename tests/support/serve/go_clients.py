"""What consumers written in Go get of partitions: franz-go's and sarama's."""

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.serve.clients import Row, placed

_SOURCE = Path(__file__).parent / "go"
_BUILD_SECONDS, _READ_SECONDS = 900, 200


def built_clients(directory: Path) -> Path | None:
    """The program with both clients, None without Go."""
    go = shutil.which("go")
    if go is None:
        return None
    program = directory / "go_clients"
    command = [go, "build", "-o", str(program), "."]
    subprocess.run(command, cwd=_SOURCE, check=True, timeout=_BUILD_SECONDS)
    return program


def records_of_go_client(
    program: Path, client: str, bootstrap_servers: str, isolation_level: str, rows: Sequence[Row]
) -> list[Row]:
    """What client `franz` or `sarama` gets of the partitions of these rows, from their first
    offsets to their last."""
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for topic, partition, offset, *_ in rows:
        start, end = places.get((topic, partition), (offset, offset))
        places[topic, partition] = min(start, offset), max(end, offset + 1)
    named = [
        f"{topic}:{partition}:{start}:{end}" for (topic, partition), (start, end) in places.items()
    ]
    command = [str(program), client, bootstrap_servers, isolation_level, *named]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_READ_SECONDS)
    assert done.returncode == 0, done.stderr
    return placed(map(_row, map(json.loads, done.stdout.splitlines())))


def _row(found: dict[str, Any]) -> Row:
    headers = [
        ((_bytes(each["Key"]) or b"").decode(), _bytes(each["Value"]))
        for each in found["Headers"] or ()
    ]
    return (
        *(found["Topic"], found["Partition"], found["Offset"], found["TimeMs"]),
        *(_bytes(found["Key"]), _bytes(found["Value"]), tuple(headers)),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
