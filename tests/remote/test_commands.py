"""Commands print the same about an object store, by URIs, as about a disk. Rule: F638."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.remote.gateway import SECRET_KEY
from tests.remote.stores import Store, needs_store
from tests.support.repository import EXAMPLES

pytestmark = needs_store
# What finds times ahead of the clock begins an hour from now.
_NOW = re.compile(r"--from-time \S+")
COMMANDS = [
    ("ls", "--by", "segment"),
    ("check",),
    ("dump", "--deep"),
    ("dump", "--format", "json", "--raw"),
    ("get-offsets",),
    ("groups",),
    ("txns", "--all"),
    ("find", "--topic", "shop.tx", "--value-contains", ""),
]


def run(command: tuple[str, ...], path: str) -> tuple[int, str, str]:
    """A command as a user runs it; the path is printed as LOGS."""
    name, *arguments = command
    done = subprocess.run(
        [sys.executable, "-m", "kafkalog", name, path, *arguments],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert SECRET_KEY not in done.stdout + done.stderr
    out, err = (_NOW.sub("", text.replace(path, "LOGS")) for text in (done.stdout, done.stderr))
    return done.returncode, out, err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command))
def test_a_command_tells_the_same_of_a_store_and_of_a_disk(
    command: tuple[str, ...], store: Store, tmp_path: Path
) -> None:
    uri, _ = store.bucket(EXAMPLES / "kafka-4.4")
    assert run(command, uri) == run(command, str(EXAMPLES / "kafka-4.4"))
