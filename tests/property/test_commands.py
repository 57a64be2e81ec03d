"""Every command that reads a log directory ends with an exit code whatever bytes lie there."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import SHOP

MOMENT = "2026-11-12T12:00:00Z"
COMMANDS = (
    ("ls", "--deep", "--by", "partition"),
    ("check",),
    ("get-offsets", "--time", "max-timestamp"),
    ("get-offsets", "--time", MOMENT),
    ("groups", "--verbose"),
    ("groups", "--lagging", "--as-of", MOMENT),
    ("groups", "--state"),
    ("groups", "--members", "--verbose"),
    ("txns", "--all"),
    ("txns", "--stable-offsets"),
)
DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    lambda chance, data: data[: chance.randrange(len(data) + 1)],
    lambda chance, data: chance.randbytes(chance.choice((1, 7, 3000))),
    lambda chance, data: data + chance.randbytes(500),
    lambda chance, data: b"",
    lambda chance, data: _flipped(chance, data),
    lambda chance, data: _with_zeros(chance, data),
)


def _flipped(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 5, 50)) if changed else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _with_zeros(chance: random.Random, data: bytes) -> bytes:
    begin = chance.randrange(len(data) + 1)
    end = min(len(data), begin + chance.choice((1, 20, 5000)))
    return data[:begin] + bytes(end - begin) + data[end:]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in range(1, 13))]
)
def test_damaged_directories_are_reported_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    for path in chance.sample(files, chance.choice((3, 20, len(files)))):
        path.write_bytes(chance.choice(DAMAGES)(chance, path.read_bytes()))
    for name, *options in COMMANDS:
        given = [name, str(copy), *options, "--format", "json", "--processes", "1"]
        result = CliRunner().invoke(kafkalog, given)
        assert isinstance(result.exception, SystemExit | None), (given, result.exception)
        assert result.exit_code in (0, 1, 3), (given, result.stderr)
