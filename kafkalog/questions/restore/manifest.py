"""The manifest of a restore: what was taken from where, what was changed, and how to undo it; and
whether a directory still is what its manifest says. Rules: docs/restore.md F1062 and F1065.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from sys import intern
from types import MappingProxyType
from typing import Any

from kafkalog.coordination.metadata.image import KRAFT_VERSION
from kafkalog.coordination.metadata.releases import (
    earliest_release,
    read_releases,
    reading_releases,
)
from kafkalog.errors import LogDirError
from kafkalog.questions.restore.inexact import not_exact
from kafkalog.questions.restore.nodes import SERVER_PROPERTIES, Node
from kafkalog.questions.restore.partitions.partition_plans import PartitionPlan
from kafkalog.questions.restore.partitions.read_back import ReadBack
from kafkalog.questions.restore.planning import REWRITTEN_TOPICS, RestorePlan
from kafkalog.questions.restore.restoring import Restored
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.read_around import unreadable_reason
from kafkalog.storage.files.unreadable_input import note_unlisted
from kafkalog.views.engine import Views
from kafkalog.wire.checksums import crc32c
from kafkalog.words import time_text

_FORMAT = "kafkalog-restore-1"
_MOST_NAMES = 5
_READ_BYTES = 8 * 1024 * 1024
_FILES_OF_A_TASK = 8
MANIFEST = "manifest.json"
FileFacts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Files:
    """The facts about files by their paths, each known when it is written."""

    facts: Iterator[tuple[str, FileFacts]]


def manifest_of(
    found: Restored, files: Iterator[tuple[str, FileFacts]] | None = None
) -> dict[str, Any]:
    """Return the manifest, to be written once by `manifest_lines`; without `files`, which are known
    once they are written. The rows of partitions and files are made one by one: there can be
    many."""
    plan = found.plan
    request, sources = plan.request, plan.sources
    metadata = plan.metadata
    manifest: dict[str, Any] = {
        "format": _FORMAT,
        "as_of_ms": request.as_of_ms,
        "as_of": time_text(request.as_of_ms),
        "restored_at_ms": request.now_ms,
        "cluster_id": request.into.cluster_id if request.into else request.cluster_id,
        "into": request.into.path if request.into else None,
        "cluster_id_before": sources.best.cluster_id,
        "least_release": least_release(plan),
        "metadata": {
            "path": metadata.copy.path,
            "end_offset": metadata.replay.next_offset,
            "last_timestamp_ms": metadata.replay.last_ms,
        },
        "inputs": [*_inputs(plan)],
        "nodes": [asdict(node) for node in plan.nodes],
        "partitions": (_partition_row(plan, each) for each in plan.plans),
        "coordinators": (_partition_row(plan, each) for each in plan.rewritten),
        "begin_empty": [
            {"topic": topic, "partition": number, "topic_id": topic_id}
            for topic, number, topic_id in plan.empty
        ],
        "left_out": [
            {"topic": each.topic, "topic_id": each.topic_id, "reason": each.reason}
            for each in plan.left_out
        ],
        "transactions": [asdict(each) for each in plan.ended],
        "incomplete_transactions": [
            {"transactional_id": name, "topic": topic, "partition": number}
            for name, topic, number in plan.incomplete
        ],
        "commits": [
            {**asdict(commit), "is_clipped": commit.is_clipped}
            for groups in found.groups.values()
            for commit in groups.commits
        ],
        "commits_left_out": [
            {"group_id": group, "topic": topic, "partition": number}
            for groups in found.groups.values()
            for group, topic, number in groups.left_out
        ],
        "doubtful_groups": [
            {"group_id": group, "keys": keys}
            for groups in found.groups.values()
            for group, keys in sorted(groups.doubtful.items())
        ],
        "offset_gap": 0 if request.reuses_offsets else request.offset_gap,
        "next_producer_id": None if request.into else metadata.next_producer_id,
        "configs": [{**asdict(each), "undo": each.undo} for each in found.configs],
        "start": None if request.into else start_command(plan.nodes[0]),
        "not_exact": [*not_exact(found)],
    }
    if request.hashes_inputs:
        manifest["input_files"] = found.input_files
    if files is not None:
        manifest["suppressed"] = [
            {"topic": topic, **asdict(each)} for topic, each in found.left_out_persons
        ]
        manifest["files"] = _Files(files)
    return manifest


def manifest_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the manifest as JSON, a line for each row."""
    end = len(manifest)
    opening = "{"
    for number, (name, value) in enumerate(manifest.items(), 1):
        head, comma = f"{opening}{json.dumps(name)}: ", "," if number < end else "}"
        opening = " "
        if isinstance(value, _Files):
            pairs = (f"{json.dumps(path)}: {json.dumps(each)}" for path, each in value.facts)
            yield from _members(f"{head}{{", pairs, f"}}{comma}")
        elif isinstance(value, (list, Iterator)):
            yield from _members(f"{head}[", map(json.dumps, value), f"]{comma}")
        else:
            yield f"{head}{json.dumps(value)}{comma}"


def _members(head: str, members: Iterator[str], tail: str) -> Iterator[str]:
    yield head
    before = next(members, None)
    for each in members:
        yield f"  {before},"
        before = each
    if before is not None:
        yield f"  {before}"
    yield f" {tail}"


def write_manifest(manifest: Mapping[str, Any], target: str) -> None:
    """Write the manifest. Raises OSError."""
    with open(os.path.join(target, MANIFEST), "x", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in manifest_lines(manifest))


def written_lines(target: str) -> Iterator[str]:
    """Yield the lines of the manifest in a directory. Raises OSError."""
    with open(os.path.join(target, MANIFEST), encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in file)


def start_command(node: Node) -> str:
    """Return the command that starts a node, in the target directory."""
    place = f"{node.directory}/" if node.directory else ""
    return f"cd {place or '.'} && kafka-server-start.sh {SERVER_PROPERTIES}"


def least_release(plan: RestorePlan) -> str:
    """Return the least release of Kafka that can open the result, by the features of the
    cluster."""
    levels = {
        key[0]: row["level"]
        for key, row in plan.image.tables["feature"].items()
        if key[0] != KRAFT_VERSION
    }
    found = next(reading_releases(levels), None)
    # Of releases before those of the tables only the levels of new clusters are known.
    return earliest_release(levels) if found in (None, next(iter(read_releases()))) else found


def _inputs(plan: RestorePlan) -> Iterator[dict[str, Any]]:
    for copy in plan.sources.metadata:
        yield {
            "path": copy.log.log.log_dir.path,
            "node_id": copy.node_id,
            "directory_id": copy.directory_id,
            "covered_ms": copy.walk.last_ms,
            "metadata_end_offset": copy.position[1],
        }


def _partition_row(plan: RestorePlan, each: PartitionPlan) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "partition": each.partition,
        "topic_id": each.topic_id,
        "copy": each.directory,
        "other_copies": each.other_copies,
        "is_united": each.is_united,
        "is_cleaned_beyond": each.is_cleaned_beyond,
        "log_start_offset": each.start,
        "cut_offset": each.cut,
        "old_end_offset": each.old_end,
        "leader_epoch": _leader_epoch(plan, each),
        "records": each.records,
        "bytes": each.bytes,
        "covered_ms": each.covered_ms,
        "is_cut_by_producers_times": each.is_by_producers,
        "lost": [asdict(lost) for lost in each.lost],
        "missing": [{"first_offset": start, "last_offset": end - 1} for start, end in each.missing],
    }


def _leader_epoch(plan: RestorePlan, each: PartitionPlan) -> int:
    if plan.request.into is not None and each.topic not in REWRITTEN_TOPICS:
        return plan.request.into.leader_epoch(*each.key)
    return plan.metadata.epochs[each.topic_id, each.partition]


def bytes_below(target: str) -> int:
    """Return the size of all files below a directory, as far as the system says it."""
    size = 0
    for directory, _, names in os.walk(target):
        for name in names:
            with suppress(OSError):
                size += os.path.getsize(os.path.join(directory, name))
    return size


def file_facts(
    views: Views,
    target: str,
    on_done: Callable[[int], None] = lambda size: None,
    known: Mapping[str, ReadBack] = MappingProxyType({}),
) -> Iterator[tuple[str, FileFacts]]:
    """Yield size and CRC-32C of every file below a directory, the manifest apart, by its path
    there; null for what cannot be read, which is noted. `on_done` is called with the size of each.
    A file of those that are `known` is not read."""
    listed = [*_listed(target)]
    unread = [(place, _not_known(place, names, known)) for place, names in listed]
    read = views.tasks(partial(_facts_of, target), [part for part in unread if part[1]])
    for place, names in listed:
        for name in names:
            path = _path(place, name)
            written = known.get(path)
            size, checksum = written.facts if written else next(read)
            yield path, {"bytes": size, "crc32c": checksum}
            on_done(size or 0)


# Some files of a directory, by their names.
_Part = tuple[str, Sequence[str]]


def _path(place: str, name: str) -> str:
    return os.path.normpath(os.path.join(place, name))


def _not_known(place: str, names: Sequence[str], known: Mapping[str, ReadBack]) -> list[str]:
    return [name for name in names if _path(place, name) not in known]


def _listed(target: str) -> Iterator[_Part]:
    """Yield the files below a directory, the manifest apart, a few for a task each. There can be
    many: files of the same name in all directories have one text for it."""
    for directory, below, names in os.walk(target, onerror=_note_unlisted):
        below.sort()
        own = [intern(name) for name in sorted(names) if (directory, name) != (target, MANIFEST)]
        for first in range(0, len(own), _FILES_OF_A_TASK):
            yield os.path.relpath(directory, target), own[first : first + _FILES_OF_A_TASK]


def _facts_of(target: str, part: _Part) -> Iterator[tuple[int | None, str | None]]:
    """Yield size and CRC-32C of each file of a part."""
    place, names = part
    return (_facts(os.path.join(target, _path(place, name))) for name in names)


def _note_unlisted(error: OSError) -> None:
    reason = unreadable_reason(error)
    if reason is None:
        raise error
    note_unlisted(str(error.filename), reason)


def _facts(path: str) -> tuple[int | None, str | None]:
    """Return size and CRC-32C."""
    checksum = position = 0
    try:
        with InputFile(path, as_stored=True) as file:
            while data := file.read_around(position, _READ_BYTES):
                checksum = crc32c(data, checksum)
                position += len(data)
            is_read = not file.unreadable
    except OSError as error:
        error.filename = error.filename or path
        _note_unlisted(error)
        return None, None
    return position, f"{checksum:08x}" if is_read else None


def read_manifest(path: str) -> dict[str, Any]:
    """Return a manifest. Raises LogDirError for a file that is none."""
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError) as error:
        raise LogDirError(f"{path} cannot be read as a manifest: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise LogDirError(f"{path} is not the manifest of a restore")
    return manifest


def differences(
    views: Views,
    target: str,
    manifest: Mapping[str, Any],
    on_done: Callable[[int], None] = lambda size: None,
) -> Iterator[str]:
    """Yield how the files of a directory differ from those that its manifest names. Raises
    LogDirError where the manifest names none."""
    files = manifest.get("files")
    if not isinstance(files, dict):
        raise LogDirError("the manifest is that of a plan: it names no files")
    found = dict(file_facts(views, target, on_done))
    for path in sorted(files.keys() | found.keys()):
        if path not in found:
            yield f"{path} is missing"
        elif path not in files:
            yield f"{path} was not written by the restore"
        elif found[path] != files[path]:
            yield f"{path} has changed: {_text(files[path])}, now {_text(found[path])}"


def _text(facts: FileFacts) -> str:
    return f"{facts['bytes']} bytes, CRC-32C {facts['crc32c']}"
