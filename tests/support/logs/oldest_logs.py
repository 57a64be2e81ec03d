"""Directories of Kafka 0.7's layout, written by hand from its documents."""

import gzip
import zlib
from pathlib import Path


def entry(payload: bytes, magic: int = 1, attributes: int = 0) -> bytes:
    """An entry as the documents lay it out."""
    head = bytes([magic, attributes]) if magic else b"\0"
    message = head + zlib.crc32(payload).to_bytes(4, "big") + payload
    return len(message).to_bytes(4, "big") + message


ONE, TWO, THREE = entry(b"one", 0), entry(b"two"), entry(b"")


PACKED = entry(gzip.compress(entry(b"four") + entry(b"five")), attributes=1)


def write_files(directory: Path, *files: bytes, digits: int = 11) -> Path:
    """Files one after another, each named by the bytes before it."""
    directory.mkdir(parents=True)
    offset = 0
    for content in files:
        (directory / f"{offset:0{digits}d}.kafka").write_bytes(content)
        offset += len(content)
    return directory
