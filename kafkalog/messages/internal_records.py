"""Records of internal topics, and control records: bytes to values. Nothing here fails on what the
bytes are. Rules: docs/format.md F188 to F191.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkalog.errors import CorruptDataError
from kafkalog.messages.catalog import Family, Framing, RecordType, control_family, topic_family
from kafkalog.messages.message_reader import (
    MESSAGE_MALFORMED,
    MESSAGE_TRUNCATED,
    read_message,
    read_uvarint,
)
from kafkalog.messages.schema import Message, Values
from kafkalog.messages.value_types import FIXED_WIDTH

# Reasons in addition to those of the message reader, `truncated` and `malformed`.
UNKNOWN_TYPE = "unknown_type"
UNKNOWN_VERSION = "unknown_version"
TRAILING_BYTES = "trailing_bytes"
NO_KEY = "no_key"
WITHOUT_VALUE = "no_value"
UNEXPECTED_KEY = "unexpected_key"
TOO_LARGE = "too_large"

# As Python values a record can take hundreds of times its bytes. Brokers write smaller records: a
# KRaft batch has at most eight MiB, a coordinator's batch one MiB unless its topic allows more.
LARGEST_RECORD = 8 * 1024 * 1024

# The frame of KRaft's and tiered storage's records has one version so far.
FRAME_VERSION = 1
_INT16 = FIXED_WIDTH["int16"]
# Keys have one version.
_KEY_VERSION = 0
_LARGEST_NUMBER = 2**15 - 1


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """The contents of a record of an internal topic, or of a control record.

    `record_type` and `name` are Kafka's; `key_version` is that of a control record's key, None
    elsewhere; `value_version` that of the value. `key` and `value` are None if they are missing or
    cannot be read: then `reason` (a label such as UNKNOWN_TYPE) and `detail` say why. A key of an
    unknown format is None without a reason. `definition` has the messages of the type, if the type
    is known. With `may_hold_secrets` the bytes can contain secrets.
    """

    is_control: bool
    is_tombstone: bool
    record_type: int | None
    name: str | None
    key_version: int | None
    value_version: int | None
    key: Values | None
    value: Values | None
    reason: str | None
    detail: str | None
    definition: RecordType | None = field(repr=False)
    may_hold_secrets: bool


class _UnreadableError(Exception):
    """Why a record cannot be read."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read_internal_record(topic: str, key: bytes | None, value: bytes | None) -> InternalRecord:
    """Return a data record of an internal topic. Raises SchemaError if the messages of the topic
    are not known."""
    return _Reading(topic_family(topic)).read(key, value)


def read_control_record(key: bytes | None, value: bytes | None) -> InternalRecord:
    """Return a control record of any topic."""
    return _Reading(control_family()).read(key, value)


class _Reading:
    """A record that is being read, and what is known of it so far."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._number: int | None = None
        self._definition: RecordType | None = None
        self._key_version: int | None = None
        self._value_version: int | None = None
        self._key: Values | None = None
        self._value: Values | None = None

    def read(self, key: bytes | None, value: bytes | None) -> InternalRecord:
        reason = detail = None
        framing = self._family.framing
        try:
            _check_size(key, value)
            if framing is Framing.COORDINATOR:
                self._coordinator_record(key, value)
            elif framing is Framing.METADATA:
                self._metadata_record(key, value)
            else:
                self._control_record(key, value)
        except _UnreadableError as error:
            reason, detail = error.reason, error.detail
        except CorruptDataError as error:
            reason, detail = error.fault, f"{error.detail}, at byte {error.position}"
        return InternalRecord(
            is_control=framing is Framing.CONTROL,
            is_tombstone=value is None and self._may_delete(key),
            record_type=self._number,
            name=self._definition.name if self._definition else None,
            key_version=self._key_version,
            value_version=self._value_version,
            key=self._key,
            value=self._value,
            reason=reason,
            detail=detail,
            definition=self._definition,
            may_hold_secrets=self._may_hold_secrets(),
        )

    def _may_delete(self, key: bytes | None) -> bool:
        """Return whether a record without a value deletes its key."""
        if self._family.framing is Framing.COORDINATOR:
            return True
        return self._family.has_opaque_keys and key is not None

    def _may_hold_secrets(self) -> bool:
        """Controllers keep credentials: what they wrote can hold some as long as it is unknown."""
        if self._definition is None:
            return self._family.framing is Framing.METADATA
        return self._definition.value.has_secrets

    def _coordinator_record(self, key: bytes | None, value: bytes | None) -> None:
        key = _there(key, NO_KEY)
        definition = self._typed(_int16(key, 0))
        self._read_key(definition, key)
        if value is not None:
            version = self._value_version = _int16(value, 0)
            self._read_value(definition.value, version, value, _INT16.size)

    def _metadata_record(self, key: bytes | None, value: bytes | None) -> None:
        if value is None and self._may_delete(key):
            return
        value = _there(value, WITHOUT_VALUE)
        frame, position = read_uvarint(value, 0)
        if frame != FRAME_VERSION:
            raise _UnreadableError(UNKNOWN_VERSION, f"frame version {frame}, not {FRAME_VERSION}")
        number, position = _small_number(value, position)
        definition = self._typed(number)
        version, position = _small_number(value, position)
        self._value_version = version
        if key is not None and not self._family.has_opaque_keys:
            raise _UnreadableError(UNEXPECTED_KEY, f"a key of {len(key)} bytes, not null")
        end = self._read_value(definition.value, version, value, position)
        if end < len(value):
            self._value = None
            raise _UnreadableError(TRAILING_BYTES, f"{len(value) - end} bytes after the message")

    def _control_record(self, key: bytes | None, value: bytes | None) -> None:
        key = _there(key, NO_KEY)
        self._key_version = _int16(key, 0)
        definition = self._typed(_int16(key, _INT16.size))
        self._read_key(definition, key)
        value = _there(value, WITHOUT_VALUE)
        version = self._value_version = _int16(value, 0)
        if definition.has_version_in_front:
            # Of a later version than is known the fields known so far are read.
            known = min(version, definition.value.versions.last)
            self._read_value(definition.value, known, value, _INT16.size)
        else:
            self._read_value(definition.value, version, value, 0)

    def _typed(self, number: int) -> RecordType:
        self._number = number
        self._definition = definition = self._family.record_types.get(number)
        if definition is None:
            raise _UnreadableError(UNKNOWN_TYPE, f"no record of type {number} is known")
        return definition

    def _read_key(self, definition: RecordType, key: bytes) -> None:
        """Read what follows the key's first number, whatever it is; ignore further bytes."""
        if definition.key is not None:
            self._key, _ = read_message(definition.key, _KEY_VERSION, key, _INT16.size)

    def _read_value(self, message: Message, version: int, value: bytes, position: int) -> int:
        """Set the values and return the position after them."""
        if version not in message.versions:
            detail = f"version {version} of {message.name}, known are {message.versions}"
            raise _UnreadableError(UNKNOWN_VERSION, detail)
        self._value, end = read_message(message, version, value, position)
        return end


def _check_size(key: bytes | None, value: bytes | None) -> None:
    size = len(key or b"") + len(value or b"")
    if size > LARGEST_RECORD:
        raise _UnreadableError(TOO_LARGE, f"{size} bytes, up to {LARGEST_RECORD} are read")


def _there(data: bytes | None, reason: str) -> bytes:
    if data is None:
        raise _UnreadableError(reason, "null is not allowed here")
    return data


def _small_number(data: bytes, position: int) -> tuple[int, int]:
    number, end = read_uvarint(data, position)
    if number > _LARGEST_NUMBER:
        raise _UnreadableError(MESSAGE_MALFORMED, f"{number} is not a record type or a version")
    return number, end


def _int16(data: bytes, position: int) -> int:
    if position + _INT16.size > len(data):
        raise _UnreadableError(
            MESSAGE_TRUNCATED, f"{len(data)} bytes are too few for type and version"
        )
    number: int = _INT16.unpack_from(data, position)[0]
    return number
