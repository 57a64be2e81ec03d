"""What the packed fixtures hold, as plain values: partitions, their segments, the golden rows."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
# Which consumer's output there is of each set.
CONSUMERS = {
    "kafka44": "read_uncommitted",
    "kafka39zk": "read_uncommitted",
    "kafka010": "simple",
    "kafka08": "simple",
    "tiered43": "read_uncommitted",
}
# The copies of one partition in set `unclean`, each damaged in a way of its own.
UNCLEAN_VARIANTS = (
    "as-killed", "truncated-last-batch", "truncated-in-header", "bitflip-payload-active",
    "bitflip-payload-first-segment", "bitflip-first-segment-recover-all",
    "bitflip-header-crc", "bitflip-leader-epoch", "zeroed-tail-appended",
    "zeroed-tail-overwritten", "zero-hole", "garbage-middle", "garbage-block-inserted",
    "garbage-tail", "length-huge", "length-negative", "length-too-small", "magic-9",
    "codec-7-valid-crc", "record-count-wrong-valid-crc", "varint-broken-valid-crc",
    "compressed-body-broken-valid-crc", "compressed-bitflip", "offsets-go-back",
    "base-offset-jump", "index-garbage", "index-garbage-active", "index-missing",
    "timeindex-missing", "all-indexes-missing", "timeindex-garbage", "snapshot-garbage",
    "epoch-checkpoint-garbage", "middle-segment-missing", "empty-active-log",
    "first-segment-truncated", "swap-and-cleaned-left",
)  # fmt: skip


@dataclass(frozen=True)
class Segment:
    """A segment's file, the numbers in its name and the next one's, and its partition."""

    path: Path
    topic: str
    partition: int
    base_offset: int
    next_base_offset: int | None


def segments(logs: Path) -> Iterator[Segment]:
    """All live segments of all partition directories below a folder."""
    for directory in sorted(path.parent for path in logs.rglob("*.log")):
        if directory.name.endswith("-delete"):
            continue
        topic, _, partition = directory.name.rpartition("-")
        files = sorted(directory.glob("*.log"))
        following = [int(path.stem) for path in files[1:]]
        for path, next_base in zip(files, [*following, None], strict=True):
            yield Segment(path, topic, int(partition), int(path.stem), next_base)


def unique_segments(logs: Path) -> list[Segment]:
    """The same, each once."""
    return sorted(set(segments(logs)), key=lambda segment: segment.path)


def topics(golden: Path, consumer: str) -> list[str]:
    """The topics of which there is a consumer's output."""
    suffix = f".{consumer}.jsonl"
    return sorted(path.name.removesuffix(suffix) for path in golden.glob(f"consumer/*{suffix}"))


def consumed(golden: Path, topic: str, consumer: str) -> list[dict[str, Any]]:
    """What the consumer received, with bytes as bytes and Kafka's numbers for types.

    A row: partition, offset, timestamp (-1 for none), timestamp_type, key, value, headers,
    leader_epoch (None where the consumer does not know).
    """
    lines = (golden / "consumer" / f"{topic}.{consumer}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        {
            "partition": row["partition"],
            "offset": row["offset"],
            "timestamp": row.get("timestamp", -1),
            "timestamp_type": TIMESTAMP_TYPES[row.get("timestampType", "NoTimestampType")],
            "key": _bytes(row["key"]),
            "value": _bytes(row["value"]),
            "headers": [
                {"key": name, "value": _bytes(value)} for name, value in row.get("headers", [])
            ]
            or None,
            "leader_epoch": row.get("leaderEpoch"),
        }
        for row in rows
        if "offset" in row
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def dumped_batches(golden: Path, segment: Segment) -> list[dict[str, str]] | None:
    """kafka-dump-log's line of every batch, as its words; None if the file was not dumped."""
    directory = segment.path.parent
    for folder in (directory.name, f"{directory.parent.name}/{directory.name}"):
        path = golden / "batches" / folder / f"{segment.path.name}.txt"
        if path.exists():
            return [_words(line) for line in path.read_text().splitlines()]
    return None


def _words(line: str) -> dict[str, str]:
    words = line.replace("deleteHorizonMs: OptionalLong", "deleteHorizonMs: ").split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    return {name.rstrip(":"): value for name, value in pairs}
