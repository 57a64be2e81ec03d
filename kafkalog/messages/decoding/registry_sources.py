"""The schemas of a registry that is asked by its address, or that lie in a directory.

Rules: docs/decoding.md F1093 and F1094.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPBasicAuthHandler, HTTPPasswordMgrWithPriorAuth, build_opener

from kafkalog.errors import SchemaError
from kafkalog.messages.schema_registry import (
    AVRO,
    JSON,
    PROTOBUF,
    RegisteredSchema,
    SchemaReference,
    SchemaRegistry,
    is_default_context,
)

_SCHEMES = ("http", "https")
_TIMEOUT_S = 60
_TYPES = {".avsc": AVRO, ".json": JSON, ".proto": PROTOBUF}


def registry_at(place: str) -> SchemaRegistry:
    """Return the schemas of the registry at a URL, or of the files in a directory. Raises
    SchemaError, which names the place without a password."""
    if urlsplit(place).scheme in _SCHEMES:
        return _of_server(place)
    return _of_directory(Path(place))


def _of_server(url: str) -> SchemaRegistry:
    """Ask a registry for all of its schemas, also those that are deleted: old payloads have their
    ids."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    passwords = HTTPPasswordMgrWithPriorAuth()
    if parts.username:
        passwords.add_password(
            None, shown, parts.username, parts.password or "", is_authenticated=True
        )
    try:
        with build_opener(HTTPBasicAuthHandler(passwords)).open(
            f"{shown}/schemas?deleted=true", timeout=_TIMEOUT_S
        ) as answer:
            return _registry(json.load(answer))
    except HTTPError as error:
        with error:
            raise SchemaError(f"{shown}: {error}") from error
    except OSError as error:
        raise SchemaError(f"{shown}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaError(f"{shown} does not answer as a schema registry") from error


def _registry(listed: Iterable[dict[str, Any]]) -> SchemaRegistry:
    """Return the state of a registry that lists its schemas."""
    schemas = [
        RegisteredSchema(
            each["subject"],
            each["version"],
            each["id"],
            each.get("schemaType", AVRO),
            each["schema"],
            tuple(
                SchemaReference(used["name"], used["subject"], used["version"])
                for used in each.get("references") or ()
            ),
        )
        for each in listed
    ]
    return SchemaRegistry(
        {each.schema_id: each for each in schemas if is_default_context(each.subject)},
        {(each.subject, each.version): each for each in schemas},
    )


def _of_directory(folder: Path) -> SchemaRegistry:
    """Return the schemas in files whose names are their ids, such as 7.avsc."""
    try:
        files = sorted(folder.iterdir())
        found = {
            int(file.stem): RegisteredSchema(
                file.stem, 1, int(file.stem), _TYPES[file.suffix], file.read_text(encoding="utf-8")
            )
            for file in files
            if file.suffix in _TYPES and file.stem.isdecimal()
        }
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{folder}: {error}") from error
    if not found:
        raise SchemaError(f"{folder} has no file such as 7.avsc, 7.json or 7.proto, named by an id")
    return SchemaRegistry(found, {(each.subject, 1): each for each in found.values()})
