"""The znodes that a client of the live ZooKeeper listed."""

import base64
import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def listing(folder: Path) -> list[Row]:
    lines = (folder / "golden" / "znodes.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def data_of(znode: Row) -> bytes | None:
    return None if znode["data"] is None else base64.b64decode(znode["data"])
