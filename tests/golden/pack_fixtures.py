"""Pack fixtures of real brokers into tests/golden/data, small enough to live in the repository.

    python tests/golden/pack_fixtures.py FIXTURES_DIR

FIXTURES_DIR holds a folder for each set named in SETS (see README.md beside this file). Consumer
output is kept whole; of kafka-dump-log's output the line of every batch, and of every entry of
indexes and producer snapshots; of internal topics, in an archive of their own, the line of every
record too.
"""

import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

DATA = Path(__file__).parent / "data"
SETS = ("kafka44", "kafka39zk", "kafka010", "kafka08", "tiered43", "unclean")
# The dump of the newest tool where there are two: it speaks of wrapper messages too.
DUMPS = ("dump-by-4.3.1", "dump", "dump/log-dirs")
BATCH_LINE = re.compile(rb"^(baseOffset: |offset: )")
RECORD_LINE = b"| offset: "
ENTRY_LINE = re.compile(rb"^(offset: |timestamp: |version: |producerId: )")


def main(fixtures: Path) -> None:
    """Write the archives of every set: the log directories, what Kafka said of them, what of the
    records of internal topics, what is in tiered storage, and ZooKeeper's data directories with
    what it said of them."""
    DATA.mkdir(exist_ok=True)
    for name in SETS:
        source = fixtures / name
        logs = {
            f"{folder.name}/{path.relative_to(folder)}": path.read_bytes()
            for folder in (source / "log-dirs", source / "variants")
            if folder.is_dir() and not (name == "unclean" and folder.name == "log-dirs")
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }
        _pack(DATA / f"{name}.logs.tar.xz", logs)
        _pack(DATA / f"{name}.golden.tar.xz", _golden(source / "golden"))
        tiered = _files(source / "tiered")
        if tiered:
            _pack(DATA / f"{name}.tiered.tar.xz", tiered)
        messages = _messages(source / "golden")
        if messages:
            _pack(DATA / f"{name}.messages.tar.xz", messages)
        zookeeper = _zookeeper(source)
        if zookeeper:
            _pack(DATA / f"{name}.zookeeper.tar.xz", zookeeper)
    _pack(DATA / "startup.logs.tar.xz", _startup(fixtures / "startup"))


def _files(folder: Path) -> dict[str, bytes]:
    """All files below a folder by their paths in it; none without the folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _golden(folder: Path) -> dict[str, bytes]:
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in ("*.json", "tools/*")
        for path in sorted(folder.glob(pattern))
    }
    for path in sorted((*folder.glob("consumer/*.gz"), *folder.glob("*/recovered.offsets.gz"))):
        files[str(path.relative_to(folder).with_suffix(""))] = gzip.decompress(path.read_bytes())
    dump = _dump_folder(folder)
    if dump is None:
        return files
    for path in sorted(dump.rglob("*.log.txt.gz")):
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        kept = b"".join(line for line in lines if BATCH_LINE.match(line))
        files[f"batches/{path.relative_to(dump).with_suffix('')}"] = kept
    for path in sorted(dump.rglob("*.txt.gz")):
        if Path(path.stem).stem.endswith((".index", ".timeindex", ".txnindex", ".snapshot")):
            lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
            kept = b"".join(line for line in lines if ENTRY_LINE.match(line))
            files[f"side_files/{path.relative_to(dump).with_suffix('')}"] = kept
    return files


def _dump_folder(folder: Path) -> Path | None:
    dump = next((folder / name for name in DUMPS if (folder / name).is_dir()), None)
    if dump is not None and (dump / "log-dirs").is_dir():
        return dump / "log-dirs"
    return dump


def _messages(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    dump = _dump_folder(folder)
    if dump is None:
        return files
    for path in sorted(dump.rglob("__*/*.txt.gz")):
        if path.name.endswith((".log.txt.gz", ".checkpoint.txt.gz")):
            lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
            kept = b"".join(line for line in lines if line.startswith(RECORD_LINE))
            files[str(path.relative_to(dump).with_suffix(""))] = kept
    return files


def _zookeeper(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in ("zookeeper-*/*/*", "golden/znodes.jsonl", "golden/zk/*")
        for path in sorted(folder.glob(pattern))
    }


def _startup(folder: Path) -> dict[str, bytes]:
    """Each content of the files in all NAME.tar.xz once, without the zeros at its end, and
    cases.json: which file has which, and what the broker did, from NAME.json."""
    contents: dict[str, bytes] = {}
    cases = {}
    for path in sorted(folder.glob("*.tar.xz")):
        name = path.name.removesuffix(".tar.xz")
        files: dict[str, tuple[str | None, int, str, int]] = {}
        with tarfile.open(path) as archive:
            for member in archive:
                mode, owner = f"{member.mode & 0o777:o}", member.uid
                file = archive.extractfile(member)
                if file is None:
                    files[member.name] = (None, 0, mode, owner)
                elif not member.name.endswith(".lock"):
                    content = file.read()
                    kept = content.rstrip(b"\0")
                    digest = hashlib.sha256(kept).hexdigest()[:16]
                    contents[f"contents/{digest}"] = kept
                    files[member.name] = (digest, len(content), mode, owner)
        outcome = json.loads((folder / f"{name}.json").read_text())
        cases[name] = {"input": files, "outcome": outcome}
    return {"cases.json": json.dumps(cases, indent=1).encode(), **contents}


def pack_deeds(folder: Path) -> None:
    """Pack what tests/support/broker/group_deeds.py has written: the log directory and checkpoints
    of Spark with the times of their files, which say when a log lost its beginning."""
    logs = {}
    times = {}
    for name in ("log-dirs", "outside"):
        for path in sorted((folder / name).rglob("*")):
            inside = path.relative_to(folder)
            is_checkpoint = "checkpoint" in inside.parts and path.suffix != ".crc"
            if path.is_file() and path.name != ".lock" and (name == "log-dirs" or is_checkpoint):
                logs[str(inside)] = path.read_bytes()
                times[str(inside)] = path.stat().st_mtime
    _pack(DATA / "positions44.logs.tar.xz", logs, times)
    _pack(DATA / "positions44.golden.tar.xz", _files(folder / "golden"))


def _pack(
    target: Path, files: dict[str, bytes], times: Mapping[str, float] = MappingProxyType({})
) -> None:
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mtime = times.get(name, 0)
            archive.addfile(member, io.BytesIO(content))
    print(f"{target.name}: {len(files)} files, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
