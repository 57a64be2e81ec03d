"""Files of Iceberg's metadata on this machine: they are on disk before a commit names them.

pyiceberg leaves what it writes to the operating system's cache: after a power failure a catalog
would name manifests and metadata files that are empty.
"""

from __future__ import annotations

import io
import os

from pyiceberg.catalog import Catalog
from pyiceberg.io import PY_IO_IMPL, WAREHOUSE
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from kafkalog.storage.files.output_files import flush_directory, flush_file, make_directories


class SyncedFiles(PyArrowFileIO):
    """Files as pyiceberg reads and writes them by Arrow; local ones are forced to disk as they are
    closed. Its methods raise OSError with the file's path."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return what writes a file at a URI or a path."""
        scheme, _, path = self.parse_location(location, self.properties)
        output = super().new_output(location)
        return _SyncedOutput(output, path) if scheme == "file" else output


class _SyncedOutput(PyArrowFile):
    def __init__(self, output: PyArrowFile, path: str) -> None:
        super().__init__(output.location, path, output._filesystem)

    def create(self, overwrite: bool = False) -> io.BufferedWriter:
        make_directories(os.path.dirname(self._path), os.fsync)
        return _SyncedFile(io.FileIO(self._path, "w" if overwrite else "x"))


class _SyncedFile(io.BufferedWriter):
    def close(self) -> None:
        if self.closed:
            return
        try:
            self.flush()
            flush_file(self.fileno(), str(self.name), os.fsync)
        finally:
            super().close()
        flush_directory(os.path.dirname(str(self.name)), os.fsync)


def write_synced(catalog: Catalog) -> Catalog:
    """Let a catalog whose warehouse is a directory force what it writes there to disk; return it.

    A warehouse can also be a name that only the catalog knows."""
    if catalog.properties.get(WAREHOUSE, "").startswith(("/", "file:")):
        catalog.properties.setdefault(PY_IO_IMPL, f"{__name__}.{SyncedFiles.__name__}")
    return catalog
