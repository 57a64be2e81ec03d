"""What runs `kafkalog dump` in tests, and records that are hard to print."""

import json
from typing import Any

from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.records import Record

FIRST_MS = 1_700_000_000_000


def dump(*arguments: object) -> Result:
    given = ["dump", "--processes", "1", *map(str, arguments)]
    return CliRunner().invoke(kafkalog, given, catch_exceptions=False)


def json_lines(*arguments: object) -> list[dict[str, Any]]:
    result = dump("--format", "json", *arguments)
    assert result.exit_code == ExitCode.DONE, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def record(offset: int, key: bytes | None, value: bytes | None, *headers: Any) -> Record:
    return Record(offset, FIRST_MS + offset, 0, key, value, tuple(headers))


# A key that is not UTF-8, an escape sequence, quotes and a line break, nulls and emptiness.
RECORDS = [
    record(0, b"\xff\x00", b"red \x1b[31m", (b"h".decode(), b"v"), ("none", None)),
    record(1, None, b""),
    record(2, b"", None),
    record(3, b'k"3', 'a,"b"\nc\\ é'.encode()),
]
