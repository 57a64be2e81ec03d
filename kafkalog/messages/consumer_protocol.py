"""The consumer protocol in the members of a classic group. Rule: docs/format.md F192."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkalog.errors import CorruptDataError
from kafkalog.messages.catalog import message
from kafkalog.messages.message_reader import MESSAGE_MALFORMED, MESSAGE_TRUNCATED, read_message
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.schema import Message, Values
from kafkalog.messages.value_types import FIXED_WIDTH

# The protocol type of consumers' groups; other groups, such as Kafka Connect's workers, use other
# formats.
CONSUMER_PROTOCOL = "consumer"
SUBSCRIPTION = "ConsumerProtocolSubscription"
ASSIGNMENT = "ConsumerProtocolAssignment"
_VERSION = FIXED_WIDTH["int16"]


def read_subscription(data: bytes) -> Values:
    """Return a member's subscription: topics, userData, ownedPartitions and so on, as far as its
    version has them. Raises CorruptDataError."""
    return _read(message(SUBSCRIPTION), data)


def read_assignment(data: bytes) -> Values:
    """Return a member's assignment: assignedPartitions and userData. Raises CorruptDataError."""
    return _read(message(ASSIGNMENT), data)


def write_assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """Return the bytes of an assignment of version 0: partitions by topic."""
    assigned = [
        {"topic": topic, "partitions": list(numbers)} for topic, numbers in partitions.items()
    ]
    body = write_message(message(ASSIGNMENT), 0, {"assignedPartitions": assigned})
    return _VERSION.pack(0) + body


def _read(protocol: Message, data: bytes) -> Values:
    if len(data) < _VERSION.size:
        raise CorruptDataError(
            MESSAGE_TRUNCATED, f"{len(data)} bytes without a version", position=0
        )
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise CorruptDataError(
            MESSAGE_MALFORMED, f"version {version} of {protocol.name}", position=0
        )
    known = min(version, protocol.versions.last)
    return read_message(protocol, known, data, _VERSION.size)[0]
