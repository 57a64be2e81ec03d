"""Schemas from a registry's REST API and from a directory. Rules: F1093, F1094.

The answers have the form that Confluent documents for GET /schemas of the Schema Registry.
"""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.decoding.registry_sources import registry_at

LISTED = [
    {"subject": "orders-value", "version": 1, "id": 1, "schema": '"long"'},
    {
        "subject": "carts-value",
        "version": 2,
        "id": 4,
        "schemaType": "JSON",
        "schema": '{"type": "object"}',
        "references": [{"name": "item.json", "subject": "item", "version": 1}],
    },
    {"subject": "item", "version": 1, "id": 3, "schemaType": "JSON", "schema": "{}"},
    {"subject": ":.other:orders-value", "version": 1, "id": 1, "schema": '"string"'},
]


class Handler(BaseHTTPRequestHandler):
    """Answers as a registry, to one user where there is one."""

    asked: ClassVar[list[str]] = []
    answer: ClassVar[bytes] = b""
    user: ClassVar[str | None] = None

    def do_GET(self) -> None:
        self.asked.append(self.path)
        wanted = self.user and "Basic " + base64.b64encode(self.user.encode()).decode()
        is_known = wanted is None or self.headers.get("Authorization") == wanted
        self.send_response(200 if is_known else 401)
        self.end_headers()
        self.wfile.write(self.answer if is_known else b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Handler, "answer", json.dumps(LISTED).encode())
    monkeypatch.setattr(Handler, "user", None)
    monkeypatch.setattr(Handler, "asked", [])
    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def test_all_schemas_of_a_registry_come_by_one_request(server: str) -> None:
    # F1093
    found = registry_at(f"http://{server}/")
    assert Handler.asked == ["/schemas?deleted=true"]
    assert {number: each.schema_type for number, each in found.by_id.items()} == {
        1: "AVRO",
        4: "JSON",
        3: "JSON",
    }
    # Ids of another context are not those of the data.
    assert found.by_id[1].text == '"long"'
    assert [each.schema_id for each in found.references(found.by_id[4]).values()] == [3]


def test_a_password_is_sent_and_not_shown(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # F1093
    monkeypatch.setattr(Handler, "user", "me:secret")
    assert len(registry_at(f"http://me:secret@{server}").by_id) == 3
    with pytest.raises(SchemaError, match="401") as error:
        registry_at(f"http://me:hidden@{server}")
    assert "hidden" not in str(error.value) and server in str(error.value)


@pytest.mark.parametrize("answer", [b"<html>", b'{"error_code": 404}', b'[{"id": 1}]'])
def test_another_server_is_no_registry(
    answer: bytes, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "answer", answer)
    with pytest.raises(SchemaError, match="does not answer as a schema registry"):
        registry_at(f"http://{server}")


def test_files_of_a_directory_are_named_by_their_ids(tmp_path: Path) -> None:
    # F1094
    (tmp_path / "7.avsc").write_text('"long"')
    (tmp_path / "12.json").write_text("{}")
    (tmp_path / "README.md").write_text("not a schema")
    found = registry_at(str(tmp_path)).by_id
    assert {number: (each.schema_type, each.text) for number, each in found.items()} == {
        7: ("AVRO", '"long"'),
        12: ("JSON", "{}"),
    }


def test_a_directory_without_schemas_says_how_they_are_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"no file such as 7\.avsc"):
        registry_at(str(tmp_path))
    with pytest.raises(SchemaError, match="No such file"):
        registry_at(str(tmp_path / "none"))
