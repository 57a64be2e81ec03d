"""`kafkalog dump --deep` against what kafka-dump-log printed, of every file that it knows.

F580, F583, F584. What differs, and why: docs/command-line.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.command_line.dump.plan import planned
from kafkalog.command_line.dump.request import DumpRequest
from kafkalog.command_line.dump.run import item_pieces
from tests.support.repository import Unpack

ENTRY = re.compile(r"baseOffset: |offset: |timestamp: |version: |producerId: ")
RECORD = "| offset: "
# Kafka's tool of 3.9 has words of its own for transactions, and Java's for tiered storage.
OWN_WORDS = ("key: transaction_metadata::", "payload: Remote")
SETS = ("kafka44", "kafka39zk", "kafka010", "kafka08", "tiered43")


def dumped(path: Path) -> list[str]:
    """The lines of one file."""
    request = DumpRequest(paths=(str(path),), deep=True, show_secrets=True)
    text = bytearray()
    for item in planned(request):
        for piece in item_pieces(item, request):
            text += piece.text
    return text.decode().split("\n")


def stored(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """The files that were dumped, by their paths in the log directories, and the tool's lines."""
    for path in sorted(folder.rglob("*.txt")):
        # The tool ends a producer without a batch with a blank.
        lines = [line.rstrip(" ") for line in path.read_text(errors="replace").splitlines()]
        yield path.relative_to(folder).with_suffix(""), lines


@pytest.mark.parametrize("name", SETS)
def test_every_line_of_batches_and_of_files_beside_is_the_tools(
    name: str, unpacked: Unpack
) -> None:
    golden, logs = unpacked(f"{name}.golden"), unpacked(f"{name}.logs")
    compared = 0
    for folder in ("batches", "side_files"):
        for file, lines in stored(golden / folder):
            if is_preallocated(logs / "log-dirs" / file):
                continue
            found = [line for line in dumped(logs / "log-dirs" / file) if ENTRY.match(line)]
            assert found == lines, file
            compared += len(lines)
    assert compared > 50


def is_preallocated(path: Path) -> bool:
    """Whether an index holds nothing but zeros, of which the tool takes the first for an entry."""
    return "index" in path.suffix and not any(path.read_bytes())


@pytest.mark.parametrize("name", SETS)
def test_every_record_of_an_internal_topic_is_the_tools_line(name: str, unpacked: Unpack) -> None:
    messages, logs = unpacked(f"{name}.messages"), unpacked(f"{name}.logs")
    compared = 0
    for file, lines in stored(messages):
        found = [line for line in dumped(logs / "log-dirs" / file) if line.startswith(RECORD)]
        assert len(found) == len(lines), file
        for line, expected in zip(found, lines, strict=True):
            own = next((words for words in OWN_WORDS if words in expected), None)
            end = len(expected) if own is None else expected.index(own)
            assert line[:end] == expected[:end], file
        compared += len(lines)
    assert compared >= 5
