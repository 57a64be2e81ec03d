"""What is run over a mutated directory, and what has to be so afterwards whatever lies there."""

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.zookeeper.kafka_directories import kafka_rows
from kafkalog.errors import KafkaLogError
from kafkalog.messages.avro_schemas import standalone_avro_schema
from kafkalog.messages.json_schemas import json_schema_type
from kafkalog.messages.proto_files import message_indexes, message_place
from kafkalog.messages.schema_registry import read_schema_registry
from kafkalog.zookeeper.data_dir import find_data_dirs
from kafkalog.zookeeper.data_dir_check import data_dir_findings
from kafkalog.zookeeper.history import changes
from kafkalog.zookeeper.log_reading import unreported
from kafkalog.zookeeper.replay import tree_at
from kafkalog.zookeeper.tree_walk import znodes
from tests.property.mutated.mutations import write_mutated
from tests.property.mutated.templates import kinds, template
from tests.support.disks.vanishing_files import (
    VanishingFiles,
    delete_directory,
    delete_file,
    mark_as_stray,
)
from tests.support.logs.plain_reader import read_ranges, read_segment_records, with_record_faults

MOST_SECONDS = 20
# What dump promises, and what a file of 64 MiB beside a log may take of any other.
_MOST_MEMORY = {"dump": 500 * 2**20}
_MOST_MEMORY_ELSEWHERE = 2**30
_MOST_COMPARED_BYTES = 2**20
# How often a file vanishes while a command runs, one of the first that it opens.
_VANISHING = 0.3
_MOST_OPENED = 12
_MOMENT = "2024-11-12T12:00:00Z"
_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("check",),
    ("check", "--severity", "information"),
    ("ls", "--by", "partition"),
    ("ls", "--by", "segment"),
    ("ls", "--deep"),
    ("ls", "--savings"),
    ("ls", "--unread"),
    ("dump",),
    ("dump",),
    ("dump", "--deep"),
    ("dump", "--deep", "--show-secrets"),
    ("dump", "--deep", "--raw"),
    ("dump", "--offsets", "3:200", "--deep"),
    ("dump", "--from-time", _MOMENT),
    ("find", "--key", "k"),
    ("find", "--value-contains", "a"),
    ("groups",),
    ("groups", "--verbose", "--lagging"),
    ("groups", "--members", "--verbose"),
    ("groups", "--state", "--as-of", _MOMENT),
    ("quorum",),
    ("quorum rebuild", "--voter", "1@localhost:9093"),
    ("quorum rebuild", "--voter", "1@localhost:9093", "--from-data", "--create-missing"),
    ("metadata", "--by", "partition"),
    ("metadata", "--diff", "start", "end", "--show-secrets"),
    ("metadata", "--commands", "--as-of", _MOMENT),
    ("txns", "--all"),
    ("txns", "--stable-offsets"),
    ("txns", "--list"),
    ("get-offsets",),
    ("get-offsets", "--time", _MOMENT),
    ("get-offsets", "--time", "max-timestamp"),
    ("replicas", "--all"),
    ("tier", "--by", "segment"),
    ("replicas", "--by", "loss"),
    ("recover",),
    ("recover", "--shutdown", "unclean", "--all"),
)
_FOR_PEOPLE = frozenset((0x09, 0x0A, *range(0x20, 0x7F), *range(0x80, 0x100)))


class WrongEndError(Exception):
    """A command that ended as none may."""


def run_seed(seed: int, scratch: Path) -> str:
    """Run some commands over the directory that a seed makes; what it was. Raises WrongEndError."""
    chance = Random(seed)
    kind = kinds()[seed % len(kinds())]
    root = scratch / "in"
    done = write_mutated(chance, template(kind, chance), root)
    before = _state(root)
    said = f"seed {seed}: {kind}: {'; '.join(done)}"
    for what in _runs(chance, kind, root, scratch):
        if _state(root) != before:
            raise WrongEndError(f"{said}: {what} changed its input")
    if not kind.startswith("zookeeper") and chance.random() < _VANISHING:
        _run_while_a_file_vanishes(chance, root, scratch / "out")
    return said


def _run_while_a_file_vanishes(chance: Random, root: Path, output: Path) -> None:
    """Run a command whose input loses one of its files, or a directory, as it is about to open
    it."""
    command = _command(chance, root, output, to_file=False)
    vanish = chance.choice((delete_file, delete_file, delete_directory, mark_as_stray))
    files = VanishingFiles(root, chance.randrange(_MOST_OPENED), vanish)
    with pytest.MonkeyPatch.context() as patched:
        files.install(patched)
        _checked(f"{' '.join(command)} without {files.path}", partial(_run, command, output))


def _runs(chance: Random, kind: str, root: Path, scratch: Path) -> Iterator[str]:
    if kind.startswith("zookeeper"):
        yield _checked("zookeeper", lambda: _read_zookeeper(root))
    if kind == "schemas":
        yield _checked("schemas", lambda: _read_schemas(root))
    for _ in range(1 if kind.startswith("zookeeper") else chance.choice((1, 2))):
        command = _command(chance, root, scratch / "out", to_file=kind == "bombs")
        yield _checked(" ".join(command), partial(_run, command, scratch / "out"))
    if not kind.startswith("zookeeper") and chance.random() < 0.2:
        for command in _table_commands(chance, root, scratch / "tables"):
            yield _checked(" ".join(command), partial(_run, command, scratch / "out"))


def _table_commands(chance: Random, root: Path, output: Path) -> Iterator[list[str]]:
    """Export up to two times, as days of a schedule do, and what the table then lacks."""
    shutil.rmtree(output, ignore_errors=True)
    mode = chance.choice(("FAILFAST", "PERMISSIVE"))
    for until in chance.choice(((_MOMENT,), (_MOMENT, "now"), ("-1d", "now"))):
        given = ("--until-time", until, "--mode", mode, "--processes", "1")
        yield ["export", str(root), "--output-dir", str(output), *given]
    more = chance.choice((["--deep"], ["--until-time", _MOMENT], ["--topic", "*"]))
    yield ["status", str(output / "ingested_records"), str(root), *more, "--format", "json"]


def _checked(what: str, run: Callable[[], None]) -> str:
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is reset
    begin, held = time.process_time(), _memory_bytes("VmRSS")
    try:
        run()
    except KafkaLogError:
        pass
    except OSError as error:
        if error.errno is None:
            raise
    seconds, peak = time.process_time() - begin, _memory_bytes("VmHWM") - held
    if seconds > MOST_SECONDS:
        raise WrongEndError(f"{what} took {seconds:.0f} s")
    if peak > _MOST_MEMORY.get(what.partition(" ")[0], _MOST_MEMORY_ELSEWHERE):
        raise WrongEndError(f"{what} took {peak / 2**20:.0f} MiB")
    return what


def _memory_bytes(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{name}:")[2].split()[0])


def _command(chance: Random, root: Path, output: Path, *, to_file: bool) -> list[str]:
    name, *options = chance.choice(_COMMANDS)
    files = sorted(path for path in root.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
    paths = [root]
    if chance.random() < 0.25 and files:
        paths = [chance.choice(files)]
        paths = [paths[0].parent] if chance.random() < 0.5 else paths
    table_format = chance.choice(("text", "json", "csv"))
    if name == "dump" and (to_file or chance.random() < 0.3):
        table_format = chance.choice(("text", "json", "csv", "parquet"))
        options += ["--output", str(output)]
    if name == "find":
        topics = {path.name.rpartition("-")[0] for path in root.iterdir()} - {""}
        options += ["--topic", chance.choice(sorted(topics) or ["t"])]
        # JSON and CSV have whole values, and click's runner keeps all that is printed.
        table_format = "text" if to_file else table_format
    if name not in ("metadata", "quorum", "quorum rebuild"):
        options += ["--processes", "1"]
    if "--commands" in options:
        table_format = "text"
    return [*name.split(), *map(str, paths), *options, "--format", table_format]


def _run(command: list[str], output: Path) -> None:
    output.unlink(missing_ok=True)
    # Not all names can be an argument of click's runner as text.
    result = CliRunner().invoke(kafkalog, command)
    said = f"{command}: exit code {result.exit_code}: {result.stderr[-500:]}"
    if not isinstance(result.exception, SystemExit | None):
        raise WrongEndError(said) from result.exception
    if result.exit_code not in (0, 1, 2, 3) or "Traceback" in result.stderr:
        raise WrongEndError(said)
    if "needs more memory" in result.stderr:
        raise WrongEndError(said)
    for printed in (result.stderr_bytes, result.stdout_bytes):
        if command[-1] == "text" and not _FOR_PEOPLE.issuperset(printed):
            raise WrongEndError(f"{said}: {printed!r} has commands for a terminal")
    if command[-1] == "json":
        for line in result.stdout.splitlines():
            json.loads(line)


def _state(root: Path) -> dict[str, tuple[object, ...]]:
    """All of a directory but when it was read."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, names in os.walk(root):
        for name in (".", *folders, *names):
            path = Path(folder, name)
            status = path.lstat()
            content = hashlib.sha1(path.read_bytes()).digest() if _is_small(path) else b""
            times = status.st_mtime_ns, status.st_ctime_ns
            found[str(path)] = (status.st_mode, status.st_ino, status.st_size, *times, content)
    return found


def _read_zookeeper(root: Path) -> None:
    for data_dir in find_data_dirs([str(root)]):
        data_dir_findings(data_dir)
        with suppress(KafkaLogError):
            for change in changes(data_dir, None, unreported):
                repr(change)
        for znode in znodes(tree_at(data_dir, None, unreported)):
            for row in kafka_rows(znode.path, znode.data):
                repr(row)


def _read_schemas(root: Path) -> None:
    for path in filter(_is_small, sorted(root.rglob("schema.*"))):
        text = path.read_bytes().decode("utf-8", "replace")
        for read in (_as_avro, _as_json, _as_proto):
            _ignoring_refusals(read, text)
    for path in filter(_is_small, sorted(root.rglob("*.log"))):
        data = path.read_bytes()
        ranges = with_record_faults(data, read_ranges(data))
        records = ((r.offset, r.key, r.value) for r in read_segment_records(data, ranges))
        registry = read_schema_registry(records)
        for schema in registry.by_id.values():
            _ignoring_refusals(registry.references, schema)
            for read in (_as_avro, _as_json, _as_proto):
                _ignoring_refusals(read, schema.text)


def _is_small(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_COMPARED_BYTES


def _as_avro(text: str) -> None:
    standalone_avro_schema(text, [text])


def _as_json(text: str) -> None:
    json_schema_type(text, {"A": text})


def _as_proto(text: str) -> None:
    for name in message_indexes(text):
        message_place(text, name)


def _ignoring_refusals(read: Callable[..., object], argument: object) -> None:
    with suppress(KafkaLogError):
        read(argument)
