"""A file read in pieces of some size, for readers that ask for a few bytes at a time."""

from __future__ import annotations

from kafkalog.storage.files.files import InputFile

_PIECE_BYTES = 1 << 20


class BufferedFile:
    """Bytes of an opened file by their position; the last piece is kept."""

    def __init__(self, file: InputFile) -> None:
        self.path = file.path
        self.size = file.size
        self._file = file
        self._start = 0
        self._piece = b""

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, fewer than `size` only at the end of the file."""
        begin = position - self._start
        if begin < 0 or begin + size > len(self._piece):
            self._piece = self._file.read(position, max(size, _PIECE_BYTES))
            self._start, begin = position, 0
        return self._piece[begin : begin + size]
