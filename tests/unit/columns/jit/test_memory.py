"""What hostile files cost: the largest process of a command stays under 500 MiB, counted as
tests/support/process_peak.py says. F56, F57"""

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kafkalog.columns.jit.compiled import COMPILED
from kafkalog.exit_codes import ExitCode
from kafkalog.format.message_set import write_old_message
from kafkalog.wire.compression import CompressionType
from kafkalog.wire.varints import write_varint
from tests.support.logs.hostile_files import (
    MIB,
    batch,
    compressed,
    least_records,
    record,
    repeated,
    wrapper,
)
from tests.support.process_peak import Run, peak_of

MOST_MIB = 500

pytestmark = pytest.mark.skipif(not COMPILED, reason="millions of records take hours uncompiled")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A file that does not stay: pytest keeps the folders of three runs."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    yield path
    path.unlink()


def kafkalog(*arguments: object) -> Run:
    command = [sys.executable, "-m", "kafkalog", *map(str, arguments)]
    return peak_of(command)


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiling, once, takes more memory than reading."""
    directory = tmp_path_factory.mktemp("logs") / "orders-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    path.write_bytes(batch(compressed(record(0, value=b"\x1b", value_bytes=5 * MIB)), 1))
    for output_format in ("text", "json", "csv"):
        kafkalog("dump", "--deep", "--format", output_format, directory)


def bomb_of_headers() -> bytes:
    """133 million empty headers in 8 KB."""
    return batch(compressed(record(0, headers=133_000_000)), 1)


def many_headers() -> bytes:
    """As many headers as are read, in each of a few records."""
    return batch(compressed(b"".join(record(i, headers=500_000)) for i in range(8)), 8)


def controls() -> bytes:
    """A value of 100 MiB in 3 KB, each byte of which is six characters in JSON."""
    return batch(compressed(record(0, value=b"\x01", value_bytes=100 * MIB)), 1)


def stored_controls() -> bytes:
    """The same, not compressed."""
    payload = b"".join(record(0, value=b"\x01", value_bytes=100 * MIB))
    return batch(payload, 1, codec=CompressionType.NONE)


def _noise() -> bytes:
    """A record with a value of 100 MiB that does not compress."""
    value = np.random.default_rng(1).bytes(100 * MIB)
    return b"".join(record(0, value=value, value_bytes=len(value)))


def noise() -> bytes:
    """That record as a producer with zstd sends it."""
    return batch(compressed([_noise()]), 1)


def stored_noise() -> bytes:
    """The same, not compressed."""
    return batch(_noise(), 1, codec=CompressionType.NONE)


def noise_among_others() -> bytes:
    """The same between small batches, so that several processes read the file."""
    few = [batch(b"".join(record(0, value_bytes=MIB)), 1, codec=CompressionType.NONE)] * 20
    batches = [*few, noise(), *few]
    return b"".join(struct.pack(">q", offset) + b[8:] for offset, b in enumerate(batches))


def header_value() -> bytes:
    """A header with a value of 100 MiB."""
    header = b"\0" + write_varint(100 * MIB) + b"\x01" * (100 * MIB)
    return batch(compressed(record(0, headers=1, header=header)), 1)


def bomb() -> bytes:
    """A value of 1 GiB in 30 KB."""
    return batch(compressed(repeated(b"\0", 1024 * MIB)), 1)


def least() -> bytes:
    """Two million records of ten bytes."""
    start = 2**20
    payload = compressed([least_records(2_000_000, start)])
    return batch(payload, 2_000_000, last_delta=start + 2_000_000)


def old_messages() -> bytes:
    """Two million messages of format 1 in a compressed one, which have checksums of their own."""
    least = write_old_message(0, 1, None, None, timestamp_ms=5)[8:]
    messages = (struct.pack(">q", offset) + least for offset in range(2_000_000))
    return wrapper(messages, 1_999_999, CompressionType.GZIP)


REFUSED = [bomb, bomb_of_headers]
READ = [many_headers, controls, stored_controls, header_value, least, old_messages]
# Each takes seconds.
LESS = [bomb, stored_controls, header_value, least, old_messages]


def deep(value: object) -> object:
    return pytest.param(value, marks=pytest.mark.deep)


@pytest.mark.parametrize("output_format", ["text", *map(deep, ["json", "csv"])])
@pytest.mark.parametrize("attack", [bomb_of_headers, many_headers, controls, *map(deep, LESS)])
def test_dump_of_a_hostile_batch(
    attack: Callable[[], bytes], output_format: str, log: Path
) -> None:
    log.write_bytes(attack())
    run = kafkalog("dump", "--deep", "--format", output_format, log)
    assert run.code == ExitCode.DONE
    assert ("1 damaged range skipped" in run.stderr) == (attack in REFUSED)
    assert run.peak_mib < MOST_MIB


@pytest.mark.deep
@pytest.mark.parametrize("attack", [*REFUSED, *READ, noise, stored_noise, noise_among_others])
def test_dump_of_a_hostile_batch_to_parquet(
    attack: Callable[[], bytes], log: Path, tmp_path: Path
) -> None:
    log.write_bytes(attack())
    output = tmp_path / "records.parquet"
    run = kafkalog("dump", "--deep", "--output", output, log)
    assert run.code == ExitCode.DONE
    assert ("1 damaged range skipped" in run.stderr) == (attack in REFUSED)
    assert run.peak_mib < MOST_MIB
    output.unlink()


@pytest.mark.deep
@pytest.mark.parametrize("arguments", [("--key", "none"), ("--value-contains", "none")])
@pytest.mark.parametrize("attack", [*REFUSED, controls, stored_controls, least, old_messages])
def test_find_in_a_hostile_batch(
    attack: Callable[[], bytes], arguments: tuple[str, str], log: Path
) -> None:
    log.write_bytes(attack())
    run = kafkalog("find", "--topic", "orders", *arguments, log.parent)
    assert run.code == ExitCode.FINDINGS  # which says that none was found
    assert run.peak_mib < MOST_MIB


@pytest.mark.deep
@pytest.mark.parametrize("attack", [*REFUSED, many_headers, controls, least, old_messages])
def test_check_of_a_hostile_batch(attack: Callable[[], bytes], log: Path) -> None:
    log.write_bytes(attack())
    run = kafkalog("check", log.parent)
    assert run.code == ExitCode.FINDINGS  # it has no index, and may be refused
    assert run.peak_mib < MOST_MIB


@pytest.mark.parametrize(("command", "most_mib"), [("dump", 200), ("check", MOST_MIB)])
def test_an_index_with_millions_of_entries_for_one_batch(
    command: str, most_mib: int, log: Path
) -> None:
    # Its entries were a list of Python's objects for dump, a row of the batch table for check.
    log.write_bytes(batch(compressed(record(0)), 1))
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 0, 6) * (2 * MIB))
    run = kafkalog(command, log.parent)
    index.unlink()
    assert run.code == {"dump": ExitCode.DONE, "check": ExitCode.FINDINGS}[command]
    assert run.peak_mib < most_mib


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_a_sparse_index_beside_an_empty_segment(kind: str, log: Path) -> None:
    # Whether its entries speak of lost records was found out with all of them in memory.
    log.touch()
    index = log.with_suffix(kind)
    with index.open("wb") as file:
        file.seek(8 * 1024 * MIB // 12 * 12 - 12)
        file.write(b"\0\0\0\1" * 3)
    run = kafkalog("check", log.parent)
    index.unlink()
    assert run.code == ExitCode.FINDINGS
    assert run.peak_mib < MOST_MIB
