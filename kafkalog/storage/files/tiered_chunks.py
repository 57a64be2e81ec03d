"""Segments that Aiven's tiered-storage plug-in has stored in compressed chunks.

Rule: docs/remote.md F557.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Protocol

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.tiered_manifest import TieredManifest
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.wire.compression import (
    CompressionError,
    CompressionType,
    OutputTooSmallError,
    decompress_into,
)

TIERED_MANIFEST = ".rsm-manifest"
# As Aiven's plug-in stores one: <topic>-<topic id>/<partition>/<base offset>-<segment id>.log
_CHUNKED_FILE = re.compile(
    r".*-[A-Za-z0-9_-]{22}/[0-9]{1,10}/[0-9]{20}-[A-Za-z0-9_-]{22}\.log", re.DOTALL
)
_MAGIC = 2  # zstd is framed in one way only


def tiered_manifest_path(path: str) -> str | None:
    """Return the manifest beside a segment in Aiven's layout of tiered storage, None for other
    files."""
    is_chunked = path.endswith(".log") and _CHUNKED_FILE.fullmatch(path)
    return path.removesuffix(".log") + TIERED_MANIFEST if is_chunked else None


class StoredFile(Protocol):
    """The file with the chunks."""

    path: str
    size: int

    @property
    def unreadable(self) -> UnreadableRanges: ...

    def read(self, position: int, size: int) -> bytes: ...

    def check_unchanged(self) -> None: ...

    def close(self) -> None: ...


class ChunkedFile:
    """A segment as it was before it was stored. One chunk of it is kept in memory."""

    def __init__(self, stored: StoredFile, manifest: TieredManifest) -> None:
        self.path = stored.path
        self.size = manifest.segment_bytes
        self._stored = stored
        self._chunk_bytes = manifest.chunk_bytes
        self._starts = [0, *accumulate(manifest.stored_sizes)]
        self._number = -1
        self._chunk = memoryview(b"")
        # By places in the segment: a chunk that cannot be read as a whole is lost.
        self.unreadable = UnreadableRanges()
        if self._starts[-1] != stored.size:
            raise CorruptDataError(
                "manifest",
                f"chunks of {self._starts[-1]} bytes, the file has {stored.size}",
                position=min(self._starts[-1], stored.size),
                path=self.path,
            )

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, fewer than `size` only at the end of the segment."""
        data = bytearray(max(min(size, self.size - position), 0))
        self.read_into(position, memoryview(data))
        return bytes(data)

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`. Raises CorruptDataError."""
        filled = 0
        while filled < len(target):
            number, index = divmod(position + filled, self._chunk_bytes)
            self._load(number)
            part = self._chunk[index : index + len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)

    def _load(self, number: int) -> None:
        if number == self._number:
            return
        start, end = self._starts[number], self._starts[number + 1]
        size = min(self._chunk_bytes, self.size - number * self._chunk_bytes)
        chunk = memoryview(bytearray(size))
        try:
            payload = memoryview(self._stored.read(start, end - start))
            hidden = self._stored.unreadable.within(start, end)
            if hidden:
                self.unreadable.add(number * self._chunk_bytes, size, hidden[0].reason)
                self._number, self._chunk = number, chunk
                return
            written = decompress_into(CompressionType.ZSTD, _MAGIC, payload, chunk)
        except (CompressionError, OutputTooSmallError) as error:
            raise self._damage(number, str(error)) from error
        if written != size:
            raise self._damage(number, f"{written} bytes, must be {size}")
        self._number, self._chunk = number, chunk

    def _damage(self, number: int, detail: str) -> CorruptDataError:
        place = self._starts[number]
        return CorruptDataError(
            "chunk", f"chunk {number}: {detail}", position=place, path=self.path
        )

    def check_unchanged(self) -> None:
        """Raises RemoteFileError for a file that was replaced meanwhile."""
        self._stored.check_unchanged()

    def close(self) -> None:
        self._stored.close()
