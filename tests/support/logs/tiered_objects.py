"""Segments as Aiven's tiered-storage plug-in stores them, written here by its documented format: no
published jar of it is at hand. Names and manifest: docs/remote.md F556, F557."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkalog.wire.compression import CompressionType, compress

TOPIC_ID = "MWJ6FHTfRYy67jzwZdeqSQ"


def segment_id(number: int) -> str:
    """An id as Kafka prints them, made of a number."""
    return base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def chunk_sizes(sizes: list[int]) -> bytes:
    """Sizes of chunks as the manifest packs them, but for zstd and base64."""
    count = len(sizes).to_bytes(4, "big")
    if len(sizes) < 2:
        return count + b"".join(size.to_bytes(4, "big") for size in sizes)
    base = min(sizes[:-1])
    width = max(1, -(-max(size - base for size in sizes[:-1]).bit_length() // 8))
    values = b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    return count + base.to_bytes(4, "big") + bytes([width]) + values + sizes[-1].to_bytes(4, "big")


def manifest(
    segment: bytes,
    epochs: Mapping[int, int],
    chunk_bytes: int,
    stored: list[int],
    *,
    is_compressed: bool,
) -> dict[str, Any]:
    """The manifest of a segment that was stored in chunks of the sizes `stored`."""
    index: dict[str, Any] = {"originalChunkSize": chunk_bytes, "originalFileSize": len(segment)}
    if is_compressed:
        packed = compress(CompressionType.ZSTD, 2, chunk_sizes(stored))
        index |= {"type": "variable", "transformedChunks": base64.b64encode(packed).decode()}
    else:
        index |= {
            "type": "fixed",
            "transformedChunkSize": chunk_bytes,
            "finalTransformedChunkSize": stored[-1] if stored else 0,
        }
    return {
        "version": "1",
        "chunkIndex": index,
        "segmentIndexes": {"offset": {"position": 0, "size": 1}, "transaction": None},
        "compression": is_compressed,
        "remoteLogSegmentMetadata": {
            "startOffset": 0,
            "endOffset": 0,
            "segmentLeaderEpochs": {str(epoch): start for epoch, start in epochs.items()},
        },
    }


def store_segment(
    folder: Path,
    name: str,
    base_offset: int,
    segment: bytes,
    *,
    number: int = 1,
    epochs: Mapping[int, int] | None = None,
    chunk_bytes: int = 4096,
    is_compressed: bool = False,
) -> Path:
    """Store a segment of partition `name` (`topic-0`); the path of its .log object."""
    topic, _, partition = name.rpartition("-")
    directory = folder / f"{topic}-{TOPIC_ID}" / partition
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{base_offset:020d}-{segment_id(number)}"
    chunks = [segment[at : at + chunk_bytes] for at in range(0, len(segment), chunk_bytes)]
    if is_compressed:
        chunks = [compress(CompressionType.ZSTD, 2, chunk) for chunk in chunks]
    content = manifest(
        segment,
        epochs or {0: base_offset},
        chunk_bytes,
        [len(chunk) for chunk in chunks],
        is_compressed=is_compressed,
    )
    (directory / f"{stem}.log").write_bytes(b"".join(chunks))
    (directory / f"{stem}.indexes").write_bytes(b"x")
    (directory / f"{stem}.rsm-manifest").write_text(json.dumps(content))
    return directory / f"{stem}.log"
