"""Files beside logs line by line: names and values in them can be anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.command_line.dump.side_files import texts


def dumped(path: Path, content: str) -> str:
    path.write_text(content)
    return b"".join(texts(str(path), as_json=False)).decode()


def dumped_json(path: Path, content: str) -> Any:
    path.write_text(content)
    return json.loads(b"".join(texts(str(path), as_json=True)))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "meta.properties",
            "a\\u001b=\x1b]0;title\x07\\u009b1m",
            "a\\x1b: \\x1b]0;title\\x07\\x9b1m",
        ),
        (
            "replication-offset-checkpoint",
            "0\n1\nt\x1b[2J 0 5\n",
            "topic: t\\x1b[2J partition: 0 offset: 5",
        ),
    ],
)
def test_a_terminal_gets_no_commands_from_a_file(
    tmp_path: Path, name: str, content: str, expected: str
) -> None:
    assert dumped(tmp_path / name, content) == f"{expected}\n"


@pytest.mark.parametrize(
    ("name", "is_said"),
    [
        (f"{0:020}.index", True),
        (f"{0:020}.timeindex", False),
        (f"{0:020}.txnindex", False),
        ("replication-offset-checkpoint", True),
    ],
)
def test_of_empty_files_is_said_what_the_tool_says(
    tmp_path: Path, name: str, is_said: bool
) -> None:
    # F580: by kafka-dump-log 4.3.1, which reads no checkpoints.
    path = tmp_path / name
    assert dumped(path, "") == (f"{path} is empty.\n" if is_said else "")


def test_a_terminal_gets_no_commands_from_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[2Jb"
    folder.mkdir()
    assert dumped(folder / f"{0:020}.index", "") == (
        f"{tmp_path}/a\\x1b[2Jb/{0:020}.index is empty.\n"
    )


def test_properties_override_no_field(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    properties = {"type": "index", "file": "/etc/passwd", "properties": "x"}
    content = "".join(f"{name}={value}\n" for name, value in properties.items())
    assert dumped_json(path, content) == {
        "type": "meta.properties",
        "file": str(path),
        "properties": properties,
    }


def test_secrets_among_properties_are_hidden(tmp_path: Path) -> None:
    # Such as server.properties under another name.
    content = "cluster.id=abc\nssl.keystore.password=geheim\nsasl.jaas.config=x geheim\n"
    path = tmp_path / "meta.properties"
    expected = {"cluster.id": "abc", "ssl.keystore.password": "***", "sasl.jaas.config": "***"}
    assert dumped_json(path, content)["properties"] == expected
    assert "geheim" not in dumped(path, content)
