"""`kafkalog get-offsets`: offsets of partitions, as kafka-get-offsets prints them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    table_format_option,
    write_table,
)
from kafkalog.errors import ConflictingOptionsError, LogDirError, OptionError, refuse_unknown
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.options import click_options as shared
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.words import TIMES_ALLOWED, first_names, given_time_ms, name_suggestions

if TYPE_CHECKING:
    from kafkalog.format.side_files.checkpoints import TopicPartition
    from kafkalog.storage.partition_log import PartitionLog
    from kafkalog.storage.reading.offset_ranges import DoubtfulRecord, TimeRule
    from kafkalog.storage.reading.replica_reads import ReplicaSet

# kafka-get-offsets takes these numbers for the words.
_NUMBERS = {
    "-1": "latest",
    "-2": "earliest",
    "-3": "max-timestamp",
    "-4": "earliest-local",
    "-5": "latest-tiered",
}
_MOST_PARTITIONS = 20
_COLUMNS = ("topic", "partition", "offset")
# Answers for a partition: its offset, if it has one, and what is doubtful about it.
_Question = Callable[["ReplicaSet"], tuple[int | None, str | None]]
_Row = tuple[str | None, int | None, int]
_Answer = tuple[_Row | None, list[str]]

_EPILOG = f"""\
{shared.PATHS_MEANING}
Give the log directories of all brokers to see all partitions; of several replicas the best one
counts. A partition without an offset for the time has no line, as with kafka-get-offsets.

\b
Examples:
  kafkalog get-offsets /var/lib/kafka/data
  kafkalog get-offsets /var/lib/kafka/data --time earliest --exclude-internal-topics
  kafkalog get-offsets /var/lib/kafka/data --time 2026-11-21T12:00:00Z --topic-pattern '^shop'
  kafkalog get-offsets /var/lib/kafka/data --topic-partitions 'orders:0-2,clicks:5'
"""


@click.command("get-offsets", epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--time",
    "time",
    metavar="TIME",
    default="latest",
    show_default=True,
    help="latest, earliest, max-timestamp, earliest-local, latest-tiered (of the given tiered "
    "storage), or a time: the first record at or after it, such as 2026-11-21T12:00:00Z, "
    f"{TIMES_ALLOWED}.",
)
@shared.topic_option()
@shared.topic_pattern_option()
@shared.partition_option()
@click.option(
    "--topic-partitions",
    metavar="PATTERN,…",
    help="Only partitions that one of these patterns matches: a regular expression for the topic, "
    "then a colon and N, N-M (without M), N- or -M; either part is optional.",
)
@click.option(
    "--exclude-internal-topics", is_flag=True, help="Leave out __consumer_offsets and the like."
)
@table_format_option
@shared.processes_option
def get_offsets(
    paths: Sequence[str],
    time: str,
    topics: Sequence[str],
    topic_pattern: str | None,
    partitions: Sequence[int],
    topic_partitions: str | None,
    exclude_internal_topics: bool,
    table_format: str,
    processes: int | None,
) -> None:
    """Print offsets of partitions as lines topic:partition:offset."""
    from kafkalog.inspection.logs.replica_facts import replica_sets
    from kafkalog.inspection.metadata.current_topics import without_former
    from kafkalog.storage.log_dir.former_topics import has_whole_name
    from kafkalog.storage.log_dir.other_entries import absent_partitions
    from kafkalog.storage.names import INTERNAL_TOPICS

    printed_columns(_COLUMNS)
    question, is_tiered = _question(time)
    is_chosen = _choice(topics, topic_pattern, partitions, topic_partitions)
    excluded = INTERNAL_TOPICS if exclude_internal_topics else frozenset()
    logs = _logs(paths, is_tiered=is_tiered)
    if not has_whole_name(f"{topic_pattern}{topic_partitions}"):
        logs = without_former(logs, topics)
    present = [
        (key, replicas)
        for replicas in replica_sets([log for log in logs if log.is_live])
        if (key := replicas.best.topic_partition) is not None and key[0] not in excluded
    ]
    absent = [] if is_tiered else list(absent_partitions(paths, logs))
    if not is_tiered:
        answered = {key for key, _ in present}
        _tell_absent(
            absent, lambda key: is_chosen(key) and key[0] not in excluded and key not in answered
        )
    if not present:
        are_files = logs and not any(log.is_live for log in logs)
        advice = "; give log directories, not files" if are_files else ""
        raise LogDirError(f"{', '.join(paths)}: there is no such partition{advice}")
    refuse_unknown("--topic", topics, {key[0] for key, _ in present})
    known = [*(key for key, _ in present), *(key for _, keys in absent for key in keys)]
    is_in_topics = _choice(topics, topic_pattern, (), None)
    _refuse_unknown_partitions(partitions, {key[1] for key in known if is_in_topics(key)})
    found = [replicas for key, replicas in present if is_chosen(key)]
    if not found:
        given = {
            "--topic-pattern": topic_pattern,
            "--topic-partitions": topic_partitions,
            "--partition": ",".join(map(str, partitions)),
        }
        option, text = next((name, text) for name, text in given.items() if text)
        held = name_suggestions([text.partition(":")[0]], {key[0] for key, _ in present})
        raise OptionError(option, text, f"what matches a partition of these topics: {held}")
    # In the tool's order: by name, in which 10 comes before 2.
    found.sort(key=lambda replicas: replicas.best.name)
    processes = processes_for(bytes_in([replicas.best for replicas in found]), processes)
    answers = in_order(lambda replicas: _answer(replicas, question), found, processes=processes)
    rows = _reported(answers)
    if table_format != "text":
        write_table(_COLUMNS, rows, table_format)
        return
    for name, partition, offset in rows:
        print_text(f"{name}:{partition}:{offset}")


def _refuse_unknown_partitions(partitions: Sequence[int], present: set[int]) -> None:
    missing = ",".join(str(number) for number in sorted(set(partitions) - present))
    if missing and present:
        held = first_names([str(number) for number in sorted(present)], _MOST_PARTITIONS)
        raise OptionError("--partition", missing, f"partitions of these topics: {held}")


def _tell_absent(
    absent: Iterable[tuple[str, list[TopicPartition]]],
    is_selected: Callable[[TopicPartition], bool],
) -> None:
    from kafkalog.storage.log_dir.other_entries import absent_line

    for path, keys in absent:
        names = [f"{topic}-{partition}" for topic, partition in filter(is_selected, keys)]
        if names:
            print_note(absent_line(path, names))


def _answer(replicas: ReplicaSet, question: _Question) -> Iterator[_Answer]:
    """Yield the row of a partition, if it has one, and notes: what is doubtful about it, and what
    is known to be lost after its end."""
    from kafkalog.columns.batches.fault_details import lost_end
    from kafkalog.inspection.logs.log_offsets import log_end_offset

    best = replicas.best
    offset, doubt = question(replicas)
    row = None if offset is None else (best.topic, best.partition, offset)
    lost = lost_end(best, log_end_offset(best, check_crcs=False))
    yield row, [str(note) for note in (doubt, lost) if note is not None]


def _reported(answers: Iterable[_Answer]) -> Iterator[_Row]:
    """Yield the rows, and print the notes on stderr."""
    for row, notes in answers:
        for note in notes:
            print_note(note)
        if row is not None:
            yield row


def _question(text: str) -> tuple[_Question, bool]:
    """Return the question about a partition, and whether it is about tiered storage."""
    from kafkalog.inspection.logs import log_offsets
    from kafkalog.storage.reading.offset_ranges import MAX_FUTURE_MS, DoubtfulRecord, TimeRule

    now_ms = time.time_ns() // 1_000_000

    def of_best(function: Callable[[PartitionLog], int]) -> _Question:
        return lambda replicas: (function(replicas.best), None)

    def earliest_local(replicas: ReplicaSet) -> tuple[int | None, None]:
        log = _on_disk(replicas.best)
        return None if log is None else log_offsets.earliest_local_offset(log), None

    def max_timestamp(replicas: ReplicaSet) -> tuple[int | None, str | None]:
        log = _on_disk(replicas.best)
        found = None if log is None else log_offsets.offset_of_max_timestamp(log)
        if found is None:
            return None, None
        is_ahead = found.timestamp_ms > now_ms + MAX_FUTURE_MS
        record = DoubtfulRecord(found.offset, found.timestamp_ms, is_ahead)
        return found.offset, _doubt(replicas, record, TimeRule(now_ms)) if is_ahead else None

    questions: dict[str, _Question] = {
        "latest": of_best(log_offsets.latest_offset),
        "earliest": of_best(log_offsets.earliest_offset),
        "max-timestamp": max_timestamp,
        "earliest-local": earliest_local,
        "latest-tiered": of_best(lambda log: log_offsets.log_end_offset(log) - 1),
    }
    word = _NUMBERS.get(text, text)
    if word in questions:
        return questions[word], word == "latest-tiered"
    try:
        timestamp_ms = given_time_ms(text, print_note, now_ms)
    except ValueError as error:
        raise OptionError("--time", text, f"{', '.join(questions)}, or a time: {error}") from None
    return lambda replicas: _offset_for_time(replicas, timestamp_ms, TimeRule(now_ms)), False


def _on_disk(log: PartitionLog) -> PartitionLog | None:
    """Return the log without its tiered segments, None if no segment is on a disk."""
    if log.tiered_topic_id is None:
        return log
    segments = tuple(segment for segment in log.segments if not segment.is_cut)
    return replace(log, segments=segments) if segments else None


def _offset_for_time(
    replicas: ReplicaSet, timestamp_ms: int, rule: TimeRule
) -> tuple[int | None, str | None]:
    """Return the offset by Kafka's rule (F99), and what is doubtful about its record (F930)."""
    from kafkalog.inspection.logs.log_offsets import earliest_local_offset, latest_offset
    from kafkalog.inspection.logs.replica_time_lookup import time_answer_in_replicas

    start = earliest_local_offset(replicas.best)
    offset, doubtful = time_answer_in_replicas(replicas, start, timestamp_ms, rule)
    # Consumers cannot fetch records that are not on all replicas.
    if offset is None or offset >= latest_offset(replicas.best):
        return None, None
    return offset, _doubt(replicas, doubtful[0], rule) if doubtful else None


def _doubt(replicas: ReplicaSet, record: DoubtfulRecord, rule: TimeRule) -> str:
    from kafkalog.storage.reading.offset_ranges import doubt_words

    return (
        f"{replicas.best.name}: the time of offset {record.offset} is doubtful: "
        f"{doubt_words(record, rule)}"
    )


def _choice(
    topics: Sequence[str],
    pattern: str | None,
    partitions: Sequence[int],
    topic_partitions: str | None,
) -> Callable[[tuple[str, int]], bool]:
    from kafkalog.command_line.topic_partitions import chosen_by_patterns
    from kafkalog.storage.partition_log import is_selected

    given = {"--topic": topics, "--topic-pattern": pattern, "--partition": partitions}
    options = [name for name, value in given.items() if value]
    if topic_partitions is not None:
        if options:
            raise ConflictingOptionsError("--topic-partitions", options[0])
        return chosen_by_patterns("--topic-partitions", topic_partitions)
    is_named = re.compile(pattern or "").search

    def is_chosen(key: tuple[str, int]) -> bool:
        return is_named(key[0]) is not None and is_selected(*key, topics, partitions)

    return is_chosen


def _logs(paths: Sequence[str], *, is_tiered: bool) -> list[PartitionLog]:
    """Return the logs on disks, or those in tiered storage."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.storage.reading.oldest_log import is_oldest_layout

    if is_tiered:
        # Each path by itself: a log's own directory continues where its tiered storage ends.
        found = [log for path in paths for log in find_logs([path], strict=False)]
        return [log for log in found if log.tiered_topic_id is not None]
    found = find_logs(paths, strict=False)
    return [log for log in found if not is_oldest_layout(log)]
