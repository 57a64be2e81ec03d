"""Records of the topic `_schemas` as the registry's serializer writes them: JSON, fields in its
order, nothing that is empty. From the classes SchemaKey, SchemaValue, DeleteSubjectKey and
ClearSubjectKey of confluentinc/schema-registry (commit 794611bd)."""

import json
from typing import Any

RegistryRecord = tuple[bytes, bytes | None]


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def noop() -> RegistryRecord:
    return b'{"keytype":"NOOP","magic":0}', None


def compatibility(level: str = "FULL") -> RegistryRecord:
    return b'{"keytype":"CONFIG","magic":0}', _json({"compatibilityLevel": level})


def registered(
    schema_id: int, schema: str, subject: str = "orders-value", version: int = 1, **others: Any
) -> RegistryRecord:
    """`others` are schemaType, references, metadata, deleted."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": schema_id, **others}
    return _json(key), _json({**value, "schema": schema, "deleted": others.get("deleted", False)})


def removed(subject: str = "orders-value", version: int = 1) -> RegistryRecord:
    return registered(0, "", subject, version)[0], None


def subject_deleted(subject: str = "orders-value", version: int = 1) -> RegistryRecord:
    key = {"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}
    return _json(key), _json({"subject": subject, "version": version})


def subject_cleared(subject: str = "orders-value") -> RegistryRecord:
    key = {"keytype": "CLEAR_SUBJECT", "subject": subject, "magic": 0}
    return _json(key), _json({"subject": subject})


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}
