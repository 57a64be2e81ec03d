"""What is done to a directory: to bytes, to names, and to what a name stands for."""

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

from kafkalog.wire.checksums import crc32c
from tests.property.mutated.templates import Files

_EXTREMES = (-1, 0, 1, 2**7 - 1, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, 2**63 - 1, -(2**63))
_AHEAD_MS = (7_200_000, 86_400_000 * 3, 86_400_000 * 27_000, 2**62)
_VARINTS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
    b"\x80" * 10,
    b"\x01",
)
# Where numbers are in batches, message sets, indexes, snapshots: at least there it is worth it.
_PLACES = (0, 2, 4, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57, 61)
_TEXTS = (
    b"\n", b"\0", b"-1", b"99999999999999999999", b"9223372036854775807", b"\x1b[2J", b"\xff",
    b"\\u0000", b"[" * 3000, b"{", b"1e309", b"0x10", b" ", "\u0663".encode(),
)  # fmt: skip
_NAMES = (
    "00000000000000000000.log", "99999999999999999999.log", "09223372036854775807.log",
    "00000000000000000007.index", "00000000000000000007.timeindex", "00000000000000000000.txnindex",
    "00000000000000000000.snapshot", "00000000000000000000.log.deleted", "0.kafka",
    "00000000000000000000-0000000000.checkpoint", "leader-epoch-checkpoint", "partition.metadata",
    "meta.properties", "replication-offset-checkpoint", "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown",
    "quorum-state", "bootstrap.checkpoint", ".lock", "a\x1b[2J", "a\nb", "a\udcff",
    "00000000000000000000-AAAAAAAAAAAAAAAAAAAAAA.log", "version-2", "log.1", "snapshot.0",
    "log.ffffffffffffffff",
)  # fmt: skip
_FOLDERS = (
    "t-0", "t--1", "t-2147483647", "t-99999999999999999999", "-0", "__consumer_offsets-0",
    "__transaction_state-0", "__cluster_metadata-0", "_schemas-0", "a" * 240 + "-0", "t\x1b-0",
    "t-0.0123456789abcdef0123456789abcdef-delete", "t-0.0123456789abcdef0123456789abcdef-future",
    "t-0.0123456789abcdef0123456789abcdef-stray", "version-2",
)  # fmt: skip
_SPARSE_BYTES = (2**20, 2**26, 2**31 - 1, 2**31 + 5, 30 * 2**30)

BytesMutation = Callable[[Random, bytearray], None]


def write_mutated(chance: Random, files: Files, root: Path) -> list[str]:
    """Write the files with some changes; what was changed."""
    done = []
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        change = chance.choices((_bytes_of_file, _swap, _rename, _move, _remove), (12, 1, 1, 1, 1))[
            0
        ]
        done.append(change(chance, files))
    for path, data in files.items():
        target = root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # a name was given to both a file and a directory
    if chance.random() < 0.15:
        done.append(_odd_entry(chance, root))
    return done


def _bytes_of_file(chance: Random, files: Files) -> str:
    path = chance.choice(sorted(files))
    data = bytearray(files[path])
    mutation = chance.choice(_TEXT if _is_text(data) and chance.random() < 0.7 else _BINARY)
    begins = _batches(data) if path.endswith((".log", ".checkpoint")) else []
    size = len(data)
    mutation(chance, data)
    if begins and len(data) == size and chance.random() < 0.7:
        _with_right_checksums(data, begins)
    files[path] = bytes(data)
    return f"{mutation.__name__} {path}"


def _is_text(data: bytearray) -> bool:
    return bool(data) and all(9 <= byte < 127 for byte in data[:200])


def _batches(data: bytearray) -> list[int]:
    """Where the batches of format 2 begin."""
    begins, position = [], 0
    while position + 61 <= len(data) and data[position + 16] == 2:
        begins.append(position)
        position += max(61, 12 + struct.unpack_from(">i", data, position + 8)[0])
    return begins


def _with_right_checksums(data: bytearray, begins: list[int]) -> None:
    """So that not every change ends at the checksum."""
    for begin in begins:
        length = struct.unpack_from(">i", data, begin + 8)[0]
        if 49 <= length <= len(data) - begin - 12:
            checksum = crc32c(bytes(data[begin + 21 : begin + 12 + length]))
            struct.pack_into(">I", data, begin + 17, checksum)


def _flip(chance: Random, data: bytearray) -> None:
    for _ in range(chance.choice((1, 2, 8)) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut(chance: Random, data: bytearray) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _extend(chance: Random, data: bytearray) -> None:
    data += chance.choice((chance.randbytes(50), bytes(chance.choice((1, 8, 5000))), bytes(data)))


def _splice(chance: Random, data: bytearray) -> None:
    begin, end, to = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    data[to:to] = data[begin:end] if chance.random() < 0.7 else b""
    if chance.random() < 0.5:
        del data[begin:end]


def _extreme(chance: Random, data: bytearray) -> None:
    begins = _batches(data) or [0]
    size = chance.choice((1, 2, 4, 4, 8))
    place = chance.choice(begins) + chance.choice(_PLACES)
    if chance.random() < 0.4:
        place = chance.randrange(len(data) + 1)
    number = chance.choice(_EXTREMES) % 2 ** (8 * size)
    _put(data, place, number.to_bytes(size, "big"))


def _future_time(chance: Random, data: bytearray) -> None:
    """A clock that is hours or ages ahead, as the first or the largest time of batches."""
    begins = _batches(data)
    for begin in chance.sample(begins, min(len(begins), chance.choice((1, 1, 3, 20)))):
        time_ms = int.from_bytes(data[begin + 35 : begin + 43], "big", signed=True)
        ahead = (time_ms + chance.choice(_AHEAD_MS)) % 2**64
        for place in chance.choice(((27, 35), (35,), (27,))):
            _put(data, begin + place, ahead.to_bytes(8, "big"))


def _varint(chance: Random, data: bytearray) -> None:
    _put(data, chance.randrange(len(data) + 1), chance.choice(_VARINTS))


def _put(data: bytearray, place: int, new: bytes) -> None:
    if place + len(new) <= len(data):
        data[place : place + len(new)] = new


def _zeros(chance: Random, data: bytearray) -> None:
    begin, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    data[begin:end] = bytes(end - begin)


def _number_in_text(chance: Random, data: bytearray) -> None:
    found = list(re.finditer(rb"-?[0-9]+", data))
    if found:
        begin, end = chance.choice(found).span()
        data[begin:end] = str(chance.choice(_EXTREMES)).encode()


def _insert_text(chance: Random, data: bytearray) -> None:
    place = chance.randrange(len(data) + 1)
    data[place:place] = chance.choice(_TEXTS)


def _repeat_line(chance: Random, data: bytearray) -> None:
    data += data.split(b"\n")[-2:][0] * chance.choice((1, 100))


_BINARY: tuple[BytesMutation, ...] = (
    _flip, _flip, _cut, _extend, _splice, _extreme, _extreme, _extreme, _varint, _varint, _zeros,
    _future_time, _future_time,
)  # fmt: skip
_TEXT: tuple[BytesMutation, ...] = (_number_in_text, _insert_text, _repeat_line, _cut, _flip)


def _swap(chance: Random, files: Files) -> str:
    one, other = chance.choice(sorted(files)), chance.choice(sorted(files))
    files[one], files[other] = files[other], files[one]
    return f"swap {one} {other}"


def _rename(chance: Random, files: Files) -> str:
    path = chance.choice(sorted(files))
    folder, slash, _ = path.rpartition("/")
    new = f"{folder}{slash}{chance.choice(_NAMES)}"
    files[new] = files.pop(path) if chance.random() < 0.5 else files[path]
    return f"rename {path} {new!r}"


def _move(chance: Random, files: Files) -> str:
    folder = chance.choice(sorted(files)).split("/")[0]
    new = chance.choice(_FOLDERS)
    for path in [path for path in files if path.startswith(f"{folder}/")]:
        files[f"{new}/{path.partition('/')[2]}"] = files.pop(path)
    return f"move {folder} {new!r}"


def _remove(chance: Random, files: Files) -> str:
    path = chance.choice(sorted(files))
    if len(files) > 1:
        del files[path]
    return f"remove {path}"


def _odd_entry(chance: Random, root: Path) -> str:
    """Something else in place of a file or a directory, or beside them."""
    entries = sorted(path for path in root.rglob("*") if not path.is_symlink())
    path = chance.choice(entries)
    if chance.random() < 0.4 or path.is_dir():
        name = chance.choice(_NAMES if chance.random() < 0.7 else _FOLDERS)
        path = (path if path.is_dir() else path.parent) / name
    if os.path.lexists(path):
        if path.is_dir():
            return "nothing"
        path.unlink()
    kind = chance.choice(("fifo", "loop", "dangling", "link", "folder", "zero", "up", "sparse"))
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            # Logs and snapshots are read to their end, and zeros take time as well.
            is_read = re.search(r"\.(log|kafka|checkpoint)$|^(log|snapshot)\.", path.name)
            file.truncate(chance.choice(_SPARSE_BYTES[: 2 if is_read else None]))
    else:
        targets = {"loop": path.name, "dangling": "nowhere", "zero": "/dev/zero", "up": ".."}
        path.symlink_to(targets.get(kind) or chance.choice(entries))
    return f"{kind} {path.relative_to(root)!r}"
