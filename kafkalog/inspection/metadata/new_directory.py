"""A new metadata directory for one controller: the log of `__cluster_metadata`, its snapshots, and
the files beside it. Rule: docs/format.md F770.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalog.format.record_batch import MAX_BATCH_BYTES, BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.format.side_files.properties import write_properties
from kafkalog.format.side_files.quorum_state import QUORUM_STATE, QuorumState, write_quorum_state
from kafkalog.inspection.metadata.quorum import Voter
from kafkalog.messages.catalog import message
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.output_files import write_file
from kafkalog.storage.log_dir.log_dir import META_PROPERTIES
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot
from kafkalog.storage.names import CLUSTER_METADATA, METADATA_TOPIC_ID
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter

DIRECTORY = f"{CLUSTER_METADATA}-0"
_KRAFT_VERSION_KEY = b"\x00\x00\x00\x05"
_VOTERS_KEY = b"\x00\x00\x00\x06"
_KRAFT_VERSIONS = {"minSupportedVersion": 0, "maxSupportedVersion": 1}
# The listener of controllers where no voter's is known.
_LISTENER = "CONTROLLER"


@dataclass(frozen=True)
class NewDirectory:
    """What is written beside the records: the directory is that of the voter `node_id`. With
    `is_dynamic` the log, rather than the controllers' configuration, names the voters."""

    cluster_id: str
    node_id: int
    voters: tuple[Voter, ...]
    is_dynamic: bool
    epoch: int

    @property
    def directory_id(self) -> str:
        """The id of the new directory."""
        return next(
            each.directory_id or "" for each in self.voters if each.voter_id == self.node_id
        )


def listener_name(voters: Sequence[Voter]) -> str:
    """Return the name of the listener that the voters before had."""
    places = [place for voter in voters for place in voter.end_points]
    return places[0].partition("://")[0] if places else _LISTENER


def write_directory(
    new: NewDirectory,
    target: str,
    batches: Iterable[bytes],
    *,
    start_offset: int = 0,
    snapshots: Iterable[MetadataSnapshot] = (),
) -> None:
    """Write the files of the new directory into an empty one. Raises OSError and what yielding the
    batches raises."""
    directory = os.path.join(target, DIRECTORY)
    settings = LogSettings(max_message_bytes=MAX_BATCH_BYTES)
    with LogWriter(directory, settings, now_ms=now_ms, start_offset=start_offset) as log:
        for batch in batches:
            log.append(batch)
        if new.is_dynamic:
            log.append(_voters_batch(new, log.next_offset))
    for snapshot in snapshots:
        _copy(snapshot.path, os.path.join(directory, os.path.basename(snapshot.path)))
    state = QuorumState(
        1 if new.is_dynamic else 0,
        None,
        new.epoch,
        None,
        ZERO_UUID,
        tuple(sorted(each.voter_id for each in new.voters)),
    )
    _write(directory, QUORUM_STATE, write_quorum_state(state))
    _write(directory, PARTITION_METADATA, write_topic_id(METADATA_TOPIC_ID))
    properties = {
        "version": "1",
        "cluster.id": new.cluster_id,
        "node.id": str(new.node_id),
        "directory.id": new.directory_id,
    }
    _write(target, META_PROPERTIES, write_properties(properties))


def kraft_version_batch(version: int, offset: int, epoch: int) -> bytes:
    """Return the batch that sets `kraft.version`."""
    return _control_batch(
        _KRAFT_VERSION_KEY, "KRaftVersionRecord", {"kRaftVersion": version}, (offset, epoch)
    )


def _voters_batch(new: NewDirectory, offset: int) -> bytes:
    """Return the batch that makes the new voters those of a dynamic quorum."""
    voters = [
        {
            "voterId": each.voter_id,
            "voterDirectoryId": each.directory_id or ZERO_UUID,
            "endpoints": [_endpoint(place) for place in each.end_points],
            "kRaftVersionFeature": _KRAFT_VERSIONS,
        }
        for each in new.voters
    ]
    return _control_batch(_VOTERS_KEY, "VotersRecord", {"voters": voters}, (offset, new.epoch))


def _control_batch(key: bytes, name: str, values: Values, place: tuple[int, int]) -> bytes:
    offset, epoch = place
    value = write_message(message(name), 0, {"version": 0, **values})
    record = Record(offset, now_ms(), 0, key, value)
    return write_batch([record], BatchFields(leader_epoch=epoch, is_control=True))


def _endpoint(text: str) -> dict[str, object]:
    """Return a listener `NAME://HOST:PORT` as the record has it."""
    name, _, place = text.partition("://")
    host, _, port = place.rpartition(":")
    return {"name": name, "host": host, "port": int(port)}


def _copy(source: str, target: str) -> None:
    with InputFile(source) as file:
        write_file(target, file.read(0, file.size), os.fsync)


def _write(directory: str, name: str, text: str) -> None:
    write_file(os.path.join(directory, name), text.encode(), os.fsync)


def now_ms() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def new_random_id() -> str:
    """Return a random id as Kafka makes it: base64 for URLs that does not begin with a dash."""
    while True:
        text = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text
