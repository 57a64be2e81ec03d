"""Which copy of a partition has most of what counted at a past moment. Rule: docs/format.md F1294;
reasons: docs/decisions/0099.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from kafkalog.inspection.logs.missing_offsets import cleaned_up_to
from kafkalog.inspection.logs.past_ends import first_offset_after
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.replica_reads import ReplicaSet
from kafkalog.words import first_names

_MOST_NAMED = 5
# Returns the first offset of a log that is later than a moment, LARGEST_OFFSET without one; None
# where the log has nothing left from before the moment.
EndOf = Callable[[PartitionLog], int | None]
# Runs a function for each set, wherever, and gives what it yields in the order of the sets.
Tasks = Callable[[Callable[[ReplicaSet], Iterator[int]], Sequence[ReplicaSet]], Iterator[int]]


def exact_from_offset(log: PartitionLog) -> int:
    """Return the offset below which retention or the cleaner may have removed something."""
    return max(log_bounds(log, EndRule.LOG_END).start_offset, cleaned_up_to(log))


def copy_at(replicas: ReplicaSet, end_of: EndOf) -> PartitionLog:
    """Return the copy that has most of what counted at a past moment: the best replica if nothing
    of it was removed, and else, of those that go on past the moment in the lineage of the best one,
    the one that was cleaned least. All that another one of them has of that moment it has too."""
    best = replicas.best
    if len(replicas.logs) == 1 or not (exact_from := exact_from_offset(best)):
        return best
    end = end_of(best)
    if end is not None and exact_from <= end:
        return best
    found = [] if end is None else [(exact_from, best)]
    for log, lineage_end in replicas.logs_and_ends[1:]:
        end = end_of(log)
        if end is not None and end < lineage_end:
            found.append((exact_from_offset(log), log))
    return min(found, key=lambda each: each[0], default=(0, best))[1]


def copies_at_time(
    sets: Sequence[ReplicaSet], tasks: Tasks, *, at_ms: int, now_ms: int
) -> list[PartitionLog]:
    """Return the same of each set for a past time, by batch headers, which `tasks` reads where the
    best replica may lack something. `now_ms` is the clock by which times are of the future
    (F930)."""
    unsure = [each for each in sets if len(each.logs) > 1 and _may_lack_some(each.best)]
    numbers = tasks(partial(_copy_number, at_ms=at_ms, now_ms=now_ms), unsure)
    chosen = {id(each): number for each, number in zip(unsure, numbers, strict=True)}
    return [each.logs[chosen.get(id(each), 0)] for each in sets]


def _may_lack_some(log: PartitionLog) -> bool:
    """Return whether something may have been removed from a log, without reading it."""
    return not log.log_dir.has_cleaner_checkpoint or exact_from_offset(log) > 0


def _copy_number(replicas: ReplicaSet, at_ms: int, now_ms: int) -> Iterator[int]:
    copy = copy_at(replicas, lambda log: first_offset_after(log, at_ms, now_ms))
    yield [log.path for log in replicas.logs].index(copy.path)


def copy_words(logs: Iterable[PartitionLog]) -> Iterator[str]:
    """Yield which copies are read in the place of the best ones."""
    found: dict[str, list[str]] = defaultdict(list)
    for log in logs:
        found[log.log_dir.path].append(log.name)
    for path, names in found.items():
        yield (
            f"read from the copies in {path}, which have more from then than the best replicas: "
            f"{first_names(names, _MOST_NAMED)}"
        )
