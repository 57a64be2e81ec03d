"""An object store that lists log directories and has no segments: millions take no room.

Answers as a store does, by listings of a thousand objects each, and counts the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import sleep
from typing import Any

import pyarrow as pa
from pyarrow import fs

SCHEME, BUCKET = "listed", "backup"
# Beside a segment's log.
_ENDINGS = (".index", ".log", ".timeindex")
_OFFSETS = 1_000_000  # of a segment
_PAGE = 1000


@dataclass
class Requests:
    """The requests that the store has answered."""

    listings: int = 0
    listed: int = 0
    opened: list[str] = field(default_factory=list)


class ListedStore(fs.FileSystemHandler):  # type: ignore[misc]
    """`brokers` log directories of `partitions` partitions each, each of so many segments."""

    def __init__(self, brokers: int, partitions: int, segments: int, size: int) -> None:
        self.brokers, self.partitions, self.segments = brokers, partitions, segments
        self.latency_s = 0.0  # of a listing, and of opening a file
        self.requests = Requests()
        self._names = [
            (f"{number * _OFFSETS:020d}{ending}", size if ending == ".log" else 10_485_760)
            for number in range(segments)
            for ending in _ENDINGS
        ]

    @property
    def uri(self) -> str:
        """What reads all log directories."""
        return f"{SCHEME}://{BUCKET}/*"

    def opened(self, uri: str, settings: object) -> tuple[Any, str]:
        """Answer as `kafkalog.storage.files.remote_systems.file_system` does."""
        return fs.PyFileSystem(self), uri.partition("://")[2]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        base = selector.base_dir.rstrip("/")
        found = list(self._whole(base) if selector.recursive else self._top(base))
        self._listing(len(found))
        return found

    def _listing(self, objects: int) -> None:
        pages = max(-(-objects // _PAGE), 1)
        self.requests.listings += pages
        self.requests.listed += objects
        if self.latency_s:
            sleep(pages * self.latency_s)

    def _top(self, base: str) -> Iterator[fs.FileInfo]:
        if base == BUCKET:
            for broker in range(self.brokers):
                yield fs.FileInfo(f"{BUCKET}/broker-{broker:04d}", fs.FileType.Directory)

    def _whole(self, base: str) -> Iterator[fs.FileInfo]:
        for name, text in self._texts(base).items():
            yield fs.FileInfo(f"{base}/{name}", fs.FileType.File, size=len(text))
        broker, file_type, info = int(base[-4:]), fs.FileType.File, fs.FileInfo
        for number in range(self.partitions):
            directory = f"{base}/{_topic(number)}-{broker * self.partitions + number}"
            for name, size in self._names:
                yield info(f"{directory}/{name}", file_type, size=size)

    def _texts(self, base: str) -> dict[str, bytes]:
        broker = int(base[-4:])
        keys = [
            f"{_topic(number)} {broker * self.partitions + number}"
            for number in range(self.partitions)
        ]
        recovered = (self.segments - 1) * _OFFSETS
        checkpoint = "\n".join(["0", str(len(keys)), *(f"{key} {recovered}" for key in keys), ""])
        return {
            "meta.properties": f"version=1\ncluster.id=many\nnode.id={broker}\n".encode(),
            "recovery-point-offset-checkpoint": checkpoint.encode(),
            "replication-offset-checkpoint": checkpoint.encode(),
            "log-start-offset-checkpoint": b"0\n0\n",
        }

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self._listing(0)
        return [fs.FileInfo(path, fs.FileType.Directory) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        self.requests.opened.append(path)
        if self.latency_s:
            sleep(self.latency_s)
        base, _, name = path.rpartition("/")
        texts = self._texts(base) if base.rpartition("/")[2].startswith("broker-") else {}
        if name not in texts:
            raise FileNotFoundError(path)
        return pa.PythonFile(pa.BufferReader(texts[name]), mode="r")

    def get_type_name(self) -> str:
        return SCHEME

    def normalize_path(self, path: str) -> str:
        return path

    def _refused(self, *_: object) -> None:
        raise NotImplementedError("a store that only lists")

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = _refused
    delete_root_dir_contents = move = open_append_stream = open_input_stream = _refused
    open_output_stream = _refused


def _topic(number: int) -> str:
    return f"orders.of.shop.{number % 50:03d}"
