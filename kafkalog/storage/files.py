"""The one place that opens files, always for reading."""

from __future__ import annotations

import os
from types import TracebackType

from kafkalog.errors import KafkaLogError


class InputFile:
    """A local file of a size fixed when it was opened: an active segment may grow meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size = os.fstat(self._descriptor).st_size

    def read(self, position: int, size: int) -> bytes:
        """The bytes from `position`, fewer than `size` only at the end of the file."""
        wanted = max(min(size, self.size - position), 0)
        data = os.pread(self._descriptor, wanted, position)
        if len(data) == wanted:
            return data
        filled = bytearray(wanted)
        self.read_into(position, memoryview(filled))
        return bytes(filled)

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`."""
        filled = 0
        while filled < len(target):
            count = os.preadv(self._descriptor, [target[filled:]], position + filled)
            if count == 0:
                raise KafkaLogError(
                    f"{self.path} ends at {position + filled} now, it had {self.size} bytes when it "
                    "was opened: it was cut while being read; read it again"
                )
            filled += count

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
