"""Topics of one name: one was deleted and made again while a broker was down, or between two copies
of log directories. Rule: docs/format.md F925.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.log_lines import warn_once
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.partition_log import LogDir, PartitionLog, topic_id
from kafkalog.words import first_names

# Kafka allows no such character in the name of a topic.
_BEFORE_ID = "@"
_MOST_PATHS = 3

# The ids that topics of these logs have now, by cluster id and name, as far as they are known.
CurrentIds = Callable[[Sequence[PartitionLog]], Mapping[tuple[str | None, str], str]]
_ById = Mapping[str, list[PartitionLog]]


def no_ids_known(_logs: Sequence[PartitionLog]) -> Mapping[tuple[str | None, str], str]:
    """Return no id: nothing says which topic has a name now."""
    return {}


def topics_apart(found: Sequence[PartitionLog], current_ids: CurrentIds) -> list[PartitionLog]:
    """Return the logs; those of a topic that does not have its name any more are named TOPIC@ID.

    A topic without a current id has no right to its name: all of that name are named so. Logs what
    was found. Opens partition.metadata of topics that are in several places.
    """
    names: dict[int, tuple[str, bool]] = {}
    current: Mapping[tuple[str | None, str], str] | None = None
    for topic, logs in sorted(_in_several_places(found).items()):
        by_id = _by_id(logs)
        if len(by_id) < 2:
            continue
        current = current_ids(found) if current is None else current
        own = {current.get((log.log_dir.cluster_id, topic)) for log in logs} & by_id.keys()
        now = own.pop() if len(own) == 1 else None
        warn_once(__name__, _words(topic, by_id, now))
        for each_id, of_id in by_id.items():
            for log in of_id if each_id != now else ():
                names[id(log)] = whole_name(topic, each_id), now is not None
    return _named(found, names) if names else list(found)


def whole_name(topic: str, each_id: str) -> str:
    """Return the name of a topic that another topic of its name makes unclear."""
    return f"{topic}{_BEFORE_ID}{each_id}"


def plain_name(topic: str, each_id: str | None) -> str:
    """Return a topic's name without its id, which a whole name has."""
    return topic if each_id is None else topic.removesuffix(f"{_BEFORE_ID}{each_id}")


def has_whole_name(pattern: str) -> bool:
    """Return whether a pattern asks for whole names of topics, TOPIC@ID."""
    return _BEFORE_ID in pattern


def _in_several_places(found: Iterable[PartitionLog]) -> dict[str, list[PartitionLog]]:
    """Return by topic the logs of those that are in several log directories."""
    logs: defaultdict[str, list[PartitionLog]] = defaultdict(list)
    for log in found:
        if log.topic is not None and log.is_live:
            logs[log.topic].append(log)
    return {
        topic: of_topic
        for topic, of_topic in logs.items()
        if len({(log.log_dir.path, log.tiered_topic_id) for log in of_topic}) > 1
        # Logs of several clusters are refused where they are used together.
        and len({log.log_dir.cluster_id for log in of_topic} - {None}) < 2
    }


def _by_id(logs: Sequence[PartitionLog]) -> _ById:
    """Return the logs by the ids of their topics, without those that have none."""
    by_id: defaultdict[str, list[PartitionLog]] = defaultdict(list)
    if any(is_remote(log.path) for log in logs):
        # A request for each partition takes long: one of each directory shows whether they differ.
        some = list({log.log_dir.path: log for log in logs}.values())
        known = {*answers(topic_id, some, lambda log: log.path)} - {None}
        if len(known) < 2:
            return {each_id: list(logs) for each_id in known if each_id is not None}
    ids = answers(topic_id, logs, lambda log: log.path)
    for log, each_id in zip(logs, ids, strict=True):
        if each_id is not None:
            by_id[each_id].append(log)
    return by_id


def _named(
    found: Sequence[PartitionLog], names: Mapping[int, tuple[str, bool]]
) -> list[PartitionLog]:
    """Return the logs, those with other names under these; `names` are by the ids of logs, with
    whether another topic has the name now."""
    by_dir: dict[int, dict[TopicPartition, TopicPartition]] = defaultdict(dict)
    log_dirs = {id(log.log_dir): log.log_dir for log in found if id(log) in names}
    for log in found:
        if id(log) in names:
            partition = log.partition or 0
            old, new = (log.topic or "", partition), (names[id(log)][0], partition)
            by_dir[id(log.log_dir)][old] = new
    # One for all logs in it: a copy for each would be as many times the checkpoints.
    known = {key: _knowing(log_dir, by_dir[key]) for key, log_dir in log_dirs.items()}

    def named(log: PartitionLog) -> PartitionLog:
        if id(log) not in names:
            return log
        topic, is_former = names[id(log)]
        return replace(log, topic=topic, log_dir=known[id(log.log_dir)], is_former=is_former)

    return [named(log) for log in found]


def _knowing(log_dir: LogDir, names: Mapping[TopicPartition, TopicPartition]) -> LogDir:
    """Return a log directory that has what its checkpoints say of partitions under other names
    too."""

    def known(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {**offsets, **{new: offsets[old] for old, new in names.items() if old in offsets}}

    return replace(
        log_dir,
        log_starts=known(log_dir.log_starts),
        high_watermarks=known(log_dir.high_watermarks),
        recovery_points=known(log_dir.recovery_points),
        cleaner_checkpoints=known(log_dir.cleaner_checkpoints),
    )


def _words(topic: str, by_id: _ById, now: str | None) -> str:
    places = {
        each_id: first_names([log.path for log in logs], _MOST_PATHS)
        for each_id, logs in sorted(by_id.items())
        if each_id != now
    }
    if now is not None:
        others = "; ".join(
            f"the former topic, in {place}, is named {whole_name(topic, each_id)} here"
            for each_id, place in places.items()
        )
        return (
            f"topic {topic} was deleted and created again: by the cluster's metadata, {topic} is "
            f"the topic with the id {now}; {others}"
        )
    others = "; ".join(
        f"{whole_name(topic, each_id)}, in {place}" for each_id, place in places.items()
    )
    return (
        f"topic {topic} was deleted and created again, and no metadata of the cluster was read "
        f"that says which topic has the name now. Their names here are: {others}. To read one of "
        "them as the current one, give a log directory with __cluster_metadata-0 too"
    )
