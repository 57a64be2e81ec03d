"""A new metadata directory for a controller of a cluster whose quorum is lost, from the best copy
that is left. Rules: docs/format.md F770 and F771.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.record_batch import MAX_BATCH_BYTES, BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.format.side_files.properties import write_properties
from kafkalog.format.side_files.quorum_state import QUORUM_STATE, QuorumState, write_quorum_state
from kafkalog.inspection.metadata.metadata_log import snapshot_entries
from kafkalog.inspection.metadata.quorum import Quorum, Voter
from kafkalog.messages.catalog import message
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.schema import ZERO_UUID
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.output_files import flush_directory, write_file
from kafkalog.storage.log_dir.log_dir import META_PROPERTIES
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter

DIRECTORY = f"{CLUSTER_METADATA}-0"
# The id of the topic in every cluster: docs/format.md F770.
_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_VOTERS_KEY = b"\x00\x00\x00\x06"
_KRAFT_VERSIONS = {"minSupportedVersion": 0, "maxSupportedVersion": 1}


@dataclass(frozen=True)
class Rebuild:
    """What is to be written: for the node `node_id`, whose directory gets the id of its voter."""

    quorum: Quorum
    node_id: int
    voters: tuple[Voter, ...]

    @property
    def directory_id(self) -> str:
        """The id of the new directory."""
        return next(
            each.directory_id or "" for each in self.voters if each.voter_id == self.node_id
        )

    @property
    def is_dynamic(self) -> bool:
        """Whether the log, rather than the controllers' configuration, names the voters."""
        return self.quorum.kraft_version > 0

    @property
    def epoch(self) -> int:
        """One more than any that a node that is here has seen."""
        states = [copy.quorum_state for copy in self.quorum.copies]
        seen = [state.leader_epoch for state in states if state]
        return max((self.quorum.best.position[0], *seen)) + 1

    @property
    def start_offset(self) -> int:
        """Where the new log begins: where that of the best copy does or, if that is damaged, with
        its last whole snapshot."""
        epochs = self.quorum.best.walk.epochs
        return epochs[0].start_offset if epochs else self.quorum.best.log.start_offset

    @property
    def end_offset(self) -> int:
        """Where the records of the best copy end in the new log."""
        return self.quorum.best.position[1]

    @cached_property
    def snapshots(self) -> list[MetadataSnapshot]:
        """The whole snapshots from which the new log goes on."""
        return [
            each
            for each in self.quorum.best.log.snapshots
            if each.end_offset >= self.start_offset and not self._is_damaged(each)
        ]

    def _is_damaged(self, snapshot: MetadataSnapshot) -> bool:
        try:
            snapshot_entries(snapshot.path)
        except CorruptDataError:
            return True
        return False


def refuse_lost_commits(quorum: Quorum) -> None:
    """Raise LogDirError where a copy diverges from the best one below a snapshot of either: what a
    snapshot has was committed, and one of the two contradicts it."""
    for copy in quorum.copies:
        place = quorum.diverges_at(copy)
        snapshots = [each for each in (copy.snapshot, quorum.best.snapshot) if each]
        committed = max((each.end_offset for each in snapshots), default=0)
        if place is not None and place < committed:
            raise LogDirError(
                f"{copy.path} and {quorum.best.path} diverge at offset {place}, below a snapshot, "
                f"which ends at {committed}: records that were committed are different. Look at "
                "both with kafkalog metadata, and leave out the copy that is not to be believed"
            )


def write_rebuilt(rebuild: Rebuild, target: str) -> None:
    """Write the files of the new directory into an empty one. Raises OSError and what reading the
    best copy raises."""
    copy, directory = rebuild.quorum.best, os.path.join(target, DIRECTORY)
    settings = LogSettings(max_message_bytes=MAX_BATCH_BYTES)
    start_offset = rebuild.start_offset
    with LogWriter(directory, settings, now_ms=_now_ms, start_offset=start_offset) as log:
        epochs = [*copy.walk.epochs]
        epoch = epochs.pop(0).epoch if epochs else 0
        batches = copy.log.batches(start_offset)
        # The batch after the last sound one can be damaged.
        while log.next_offset < rebuild.end_offset:
            batch = next(batches)
            if epochs and epochs[0].start_offset <= batch.header.base_offset:
                epoch = epochs.pop(0).epoch
            log.append(_with_epoch(batch.data, epoch))
        if rebuild.is_dynamic:
            log.append(_voters_batch(rebuild))
    for snapshot in rebuild.snapshots:
        _copy(snapshot.path, os.path.join(directory, os.path.basename(snapshot.path)))
    state = QuorumState(
        1 if rebuild.is_dynamic else 0,
        None,
        rebuild.epoch,
        None,
        ZERO_UUID,
        tuple(sorted(each.voter_id for each in rebuild.voters)),
    )
    _write(directory, QUORUM_STATE, write_quorum_state(state))
    _write(directory, PARTITION_METADATA, write_topic_id(_TOPIC_ID))
    properties = {
        "version": "1",
        "cluster.id": copy.cluster_id or "",
        "node.id": str(rebuild.node_id),
        "directory.id": rebuild.directory_id,
    }
    _write(target, META_PROPERTIES, write_properties(properties))
    flush_directory(directory, os.fsync)


def _with_epoch(batch: bytes, epoch: int) -> bytes:
    """Return a batch with the epoch of its leader, which no checksum covers."""
    return batch[:12] + epoch.to_bytes(4, "big") + batch[16:]


def _voters_batch(rebuild: Rebuild) -> bytes:
    """Return the batch that makes the new voters those of a dynamic quorum."""
    voters = [
        {
            "voterId": each.voter_id,
            "voterDirectoryId": each.directory_id or ZERO_UUID,
            "endpoints": [_endpoint(place) for place in each.end_points],
            "kRaftVersionFeature": _KRAFT_VERSIONS,
        }
        for each in rebuild.voters
    ]
    value = write_message(message("VotersRecord"), 0, {"version": 0, "voters": voters})
    record = Record(rebuild.end_offset, _now_ms(), 0, _VOTERS_KEY, value)
    return write_batch([record], BatchFields(leader_epoch=rebuild.epoch, is_control=True))


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


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def listener_name(voters: Sequence[Voter]) -> str:
    """Return the name of the listener that the voters before had."""
    places = [place for voter in voters for place in voter.end_points]
    return places[0].partition("://")[0] if places else "CONTROLLER"
