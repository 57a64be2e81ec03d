"""Which version of a message a reader of Kafka must know to read a value of it.

Kafka's readers do not check the version of a message as such: fields that they do not know are
garbage at its end unless they are tagged, and a struct of a version that they do not know is an
error. Rule: docs/format.md F1015.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.messages.schema import Message, SchemaField, Values


def needed_version(message: Message, version: int, values: Values) -> int:
    """Return the least last version of a reader that reads these values of a message of a
    version."""
    if _has_structs(message.fields, values):
        return version
    needed = version
    while needed > message.versions.first and not _adds_plain(message.fields, needed):
        needed -= 1
    return needed


def _has_structs(fields: Iterable[SchemaField], values: Values) -> bool:
    return any(field.struct is not None and bool(values.get(field.name)) for field in fields)


def _adds_plain(fields: Iterable[SchemaField], version: int) -> bool:
    """Return whether a version adds a field that is not tagged."""
    return any(field.tag is None and field.versions.first == version for field in fields)
