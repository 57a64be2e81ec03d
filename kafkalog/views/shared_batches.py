"""Record batches that a process passes on in memory that both have, instead of copying them
through a pipe: what is sent is the descriptor of that memory, which nothing else names."""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # help imports this file, and nothing slow
    import pyarrow as pa

# A smaller one is copied: a mapping costs as much as to copy so many bytes.
_LEAST_BYTES = 256 * 1024


class SharedBatch:
    """Takes a batch's place in a message; the descriptor of its memory comes after the message."""


def is_shared(result: object) -> bool:
    """Return whether a result is a batch that is large enough to be passed on in shared memory."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not hasattr(os, "memfd_create"):
        return False
    return isinstance(result, arrow.RecordBatch) and result.nbytes >= _LEAST_BYTES


def send_batch(connection: Connection, batch: pa.RecordBatch) -> None:
    """Send the memory of a batch to a process of this machine."""
    import pyarrow as pa

    descriptor = os.memfd_create("kafkalog")
    try:
        with (
            os.fdopen(descriptor, "wb", closefd=False) as file,
            pa.PythonFile(file, "w") as sink,
            pa.ipc.new_stream(sink, batch.schema) as writer,
        ):
            writer.write_batch(batch)
        send_handle(connection, descriptor, None)
    finally:
        os.close(descriptor)


def receive_batch(connection: Connection) -> pa.RecordBatch:
    """Return a batch whose memory comes next. Raises EOFError where the sender has ended."""
    import pyarrow as pa

    try:
        descriptor = recv_handle(connection)
    except RuntimeError as error:  # the connection has ended
        raise EOFError from error
    try:
        # Closed at once, for there may be thousands; the mapping stays as long as the batch.
        with pa.memory_map(f"/proc/self/fd/{descriptor}") as file:
            return pa.ipc.open_stream(file).read_next_batch()
    finally:
        os.close(descriptor)
