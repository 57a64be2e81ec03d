"""A plan becomes directories that brokers start with: partitions are written in parallel, then the
coordinators' topics, the metadata and the files of the nodes; the result is judged before it
gets its name. Rules: docs/restore.md F1030, F1033, F1034 and F1065.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.format.record_batch import MAX_BATCH_BYTES, BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.questions.restore.groups import (
    Entry,
    GroupSettings,
    RestoredGroups,
    restored_groups,
    restored_share_states,
)
from kafkalog.questions.restore.metadata import ChangedConfig
from kafkalog.questions.restore.nodes import (
    SERVER_PROPERTIES,
    Node,
    NodeSettings,
    server_properties,
    write_checkpoints,
)
from kafkalog.questions.restore.partitions.copied_bytes import Suppressed
from kafkalog.questions.restore.partitions.partition_files import (
    ATTEMPT,
    WriteTask,
    WrittenPartition,
    write_partition,
)
from kafkalog.questions.restore.partitions.read_back import ReadBack
from kafkalog.questions.restore.planning import RestorePlan
from kafkalog.questions.restore.transactions import state_values
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.views.engine import Views

_BATCH_BYTES = 256 * 1024


@dataclass
class Restored:
    """What was written, or would be: `groups` by partition of `__consumer_offsets`, with
    `--hash-inputs` the `input_files` by input, and `files` that were read back, by their paths in
    the directory."""

    plan: RestorePlan
    groups: dict[int, RestoredGroups] = field(default_factory=dict)
    entries: dict[tuple[str, int], list[Entry]] = field(default_factory=dict)
    written: dict[int, list[WrittenPartition]] = field(default_factory=dict)
    suppressed: dict[str, Suppressed] = field(default_factory=dict)
    input_files: dict[str, Any] = field(default_factory=dict)
    files: dict[str, ReadBack] = field(default_factory=dict)

    @property
    def left_out_persons(self) -> list[tuple[str, Suppressed]]:
        """What `--suppress` has found, by topic."""
        nothing = Suppressed()
        return [pair for pair in sorted(self.suppressed.items()) if pair[1] != nothing]

    @property
    def configs(self) -> Sequence[ChangedConfig]:
        """The configs that are changed or, in a cluster that exists, are to be changed first."""
        into = self.plan.request.into
        if into is None:
            return self.plan.metadata.configs
        return into.retention(sorted({each.topic for each in self.plan.plans}))

    def add(self, node: Node, part: WrittenPartition) -> None:
        """Take note of what was written on a node."""
        directory = os.path.join(node.log_directory, f"{part.topic}-{part.partition}")
        for name, file in part.files.items():
            self.files[os.path.join(directory, name)] = file
        if part.is_whole:
            self.written.setdefault(node.node_id, []).append(replace(part, files={}))
        # Each node that a partition is on leaves out the same.
        if self._counted(part) is node:
            self.suppressed.setdefault(part.topic, Suppressed()).add(part.suppressed)

    def _counted(self, part: WrittenPartition) -> Node:
        into = self.plan.request.into
        if into is None:
            return self.plan.leader_of(part.topic, part.partition)
        return into.nodes_of(part.topic, part.partition)[0]


def restored(plan: RestorePlan) -> Restored:
    """Return what the coordinators' topics get."""
    found = Restored(plan)
    _add_coordinators(found)
    return found


def _add_coordinators(found: Restored) -> None:
    plan = found.plan
    request = plan.request
    settings = GroupSettings(
        plan.ends,
        {each.key: each.epochs[-1].epoch for each in plan.plans if each.epochs},
        {each.topic_id for each in plan.plans},
        request.is_group_chosen,
        request.now_ms,
    )
    ends = {(each.topic_id, each.partition): each.cut for each in plan.plans}
    states = state_values(plan.transactions.ids.values(), request.now_ms)
    for each in plan.rewritten:
        records = plan.records.get(each.key, [])
        if each.topic == CONSUMER_OFFSETS:
            groups = restored_groups(records, each.cut, plan.transactions.is_committed, settings)
            found.groups[each.partition] = groups
            found.entries[each.key] = groups.entries
        elif each.topic == TRANSACTION_STATE:
            found.entries[each.key] = states.get(each.partition, [])
        elif each.topic == SHARE_GROUP_STATE:
            found.entries[each.key] = restored_share_states(records, each.cut, ends, settings)


def write_restored(
    views: Views, found: Restored, target: str, on_done: Callable[[int], None]
) -> None:
    """Write all files below an empty directory that no reader sees yet. `on_done` is called with
    the number of bytes that were copied. Raises OSError."""
    plan = found.plan
    for node in plan.nodes:
        os.makedirs(os.path.join(target, node.log_directory))
    tasks = [*_write_tasks(plan, target)]
    results = views.tasks(write_partition, [task for _, task in tasks])
    for (node, _), written in zip(tasks, results, strict=True):
        found.add(node, written)
        on_done(written.bytes)
    _remove_attempts(plan, target)
    if plan.request.into is not None:
        return
    _write_coordinators(found, target)
    for node in plan.request.nodes:
        log_directory = os.path.join(target, node.log_directory)
        plan.metadata.write(node, log_directory)
        write_checkpoints(log_directory, found.written.pop(node.node_id, []))
        text = server_properties(node, plan.request.nodes, _node_settings(plan))
        path = os.path.join(target, node.directory, SERVER_PROPERTIES)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)


def _remove_attempts(plan: RestorePlan, target: str) -> None:
    """Remove what tasks have left that failed and ran again."""
    for node in plan.nodes:
        log_directory = os.path.join(target, node.log_directory)
        for name in os.listdir(log_directory):
            if name.endswith(ATTEMPT):
                shutil.rmtree(os.path.join(log_directory, name))


def _write_tasks(plan: RestorePlan, target: str) -> Iterator[tuple[Node, WriteTask]]:
    """Make the directories of partitions, and yield what is to be written into each."""
    request = plan.request
    into = request.into
    log_directories = {
        node.node_id: os.path.join(target, node.log_directory) for node in plan.nodes
    }
    for each in plan.plans:
        for node in plan.places_of(each):
            log_directory = log_directories[node.node_id]
            os.mkdir(os.path.join(log_directory, each.name))
            written = each if into is None else into.adopted(each)
            task = WriteTask(
                *(written, plan.endings.get(each.key, ()), log_directory, request.as_of_ms),
                links=request.links,
                next_offset=0 if request.reuses_offsets else each.old_end + request.offset_gap,
                suppression=request.suppression,
                highest_epoch=None if into is None else into.leader_epoch(*each.key),
            )
            yield from ((node, part) for part in task.parts())


def _node_settings(plan: RestorePlan) -> NodeSettings:
    partitions: dict[str, int] = {}
    topics = plan.image.tables["topic"]
    for topic_id, _ in plan.image.tables["partition"]:
        topic = topics[topic_id,]["topic"]
        partitions[topic] = partitions.get(topic, 0) + 1
    return NodeSettings(
        partitions,
        plan.request.replication,
        plan.metadata.is_dynamic,
        bool(plan.image.tables["acl"]),
    )


def _write_coordinators(found: Restored, target: str) -> None:
    """Write the logs of the coordinators' topics again, and the partitions that begin empty."""
    plan = found.plan
    logs = [
        (each.topic, each.partition, each.topic_id, each.old_end, found.entries.get(each.key, []))
        for each in plan.rewritten
    ]
    logs += [(topic, number, topic_id, 0, []) for topic, number, topic_id in plan.empty]
    for topic, number, topic_id, start, entries in logs:
        epoch = plan.metadata.epochs[topic_id, number]
        for node in plan.nodes_of(topic_id, number):
            directory = os.path.join(target, node.log_directory, f"{topic}-{number}")
            end = _write_log(directory, start, entries, epoch, plan.request.now_ms)
            path = os.path.join(directory, PARTITION_METADATA)
            with open(path, "x", encoding="utf-8") as file:
                file.write(write_topic_id(topic_id))
            written = WrittenPartition(topic, number, start, end, start, None, 0)
            found.add(node, written)


def _write_log(
    directory: str, start: int, entries: Sequence[Entry], epoch: int, now_ms: int
) -> int:
    """Write a log with one record for each key, and return its end."""
    settings = LogSettings(max_message_bytes=MAX_BATCH_BYTES)
    with LogWriter(
        directory, settings, now_ms=lambda: now_ms, flush=lambda _: None, start_offset=start
    ) as log:
        for batch in _batches(entries, start, epoch, now_ms):
            log.append(batch)
        return log.next_offset


def _batches(entries: Sequence[Entry], start: int, epoch: int, now_ms: int) -> Iterator[bytes]:
    waiting: list[Record] = []
    size = 0
    fields = BatchFields(leader_epoch=epoch)
    for offset, (key, value) in enumerate(entries, start):
        waiting.append(Record(offset, now_ms, 0, key, value))
        size += len(key) + len(value)
        if size >= _BATCH_BYTES:
            yield write_batch(waiting, fields)
            waiting, size = [], 0
    if waiting:
        yield write_batch(waiting, fields)
