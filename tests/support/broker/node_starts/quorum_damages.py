"""What keeps a node from finding a leader of the controllers, and metadata with odd offsets: each
with what Kafka 4.4.0 did. tests/broker/damage starts brokers on each."""

from pathlib import Path

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.catalog import message
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.record_writer import write_record_value
from kafkalog.messages.schema import Values
from tests.support.broker.node_starts.read_damages import ReadDamage, all_of, directory_id
from tests.support.broker.node_starts.startup_damages import Damage, changed, written

_METADATA = "d1/__cluster_metadata-0"
# Where the control's copy of the metadata ends, and in which epoch.
_END, _EPOCH = 85, 2
_NOW_MS = 1_795_632_060_000
_OTHER_ID = "AAAAAAAAAAAAAAAAAAAAZQ"
_STATIC = "controller.quorum.voters=1@localhost:29493"
_BOOTSTRAP = "controller.quorum.bootstrap.servers=localhost:29493"
_FAR = 2**31 + 5
_NOTHING = write_record_value("__cluster_metadata", 20, 0, {})


def _appended(
    offset: int, value: bytes, key: bytes | None = None, topic: str = _METADATA, epoch: int = _EPOCH
) -> Damage:
    """Return what appends a batch of one record to a log; a control batch if it has a key."""

    def append(folder: Path) -> None:
        fields = BatchFields(leader_epoch=epoch, is_control=key is not None)
        with max((folder / topic).glob("*.log")).open("ab") as log:
            log.write(write_batch([Record(offset, _NOW_MS, 0, key, value)], fields))

    return append


def _control(offset: int, number: int, name: str, values: Values) -> Damage:
    value = write_message(message(name), 0, {"version": 0, **values})
    return _appended(offset, value, bytes((0, 0, 0, number)))


def _voters(place: str | None) -> Damage:
    """Return what makes the quorum dynamic, with node 1 as its voter: its directory is d1, or has
    another id."""

    def change(folder: Path) -> None:
        voter = {
            "voterId": 1,
            "voterDirectoryId": place or directory_id(folder, "d1"),
            "endpoints": [{"name": "CONTROLLER", "host": "localhost", "port": 29493}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
        _control(_END, 5, "KRaftVersionRecord", {"kRaftVersion": 1})(folder)
        _control(_END + 1, 6, "VotersRecord", {"voters": [voter]})(folder)

    return change


QUORUM_DAMAGES: dict[str, ReadDamage] = {
    "properties-bootstrap-without-voters": ReadDamage(
        changed("server.properties", _STATIC, _BOOTSTRAP), starts=False
    ),
    "voters-recorded": ReadDamage(
        all_of(_voters(None), changed("server.properties", _STATIC, _BOOTSTRAP))
    ),
    "voters-recorded-and-in-properties": ReadDamage(_voters(None)),
    "voter-of-another-directory": ReadDamage(_voters(_OTHER_ID), starts=False),
    "metadata-far-record": ReadDamage(_appended(_FAR, _NOTHING)),
    "metadata-far-garbage": ReadDamage(_appended(_FAR, b"v"), starts=False),
    "snapshot-name-with-more": ReadDamage(
        written(f"{_METADATA}/00000000000000000050-0000000001-1.checkpoint", "x")
    ),
}
