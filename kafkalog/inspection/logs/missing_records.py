"""Which records of an internal topic the input lacks although its checkpoints or indexes know them.

Rule: docs/format.md F940.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from kafkalog.columns.batches.fault_details import missing_end
from kafkalog.errors import LogDirError, refuse_unknown
from kafkalog.inspection.logs.log_offsets import log_end_offset
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.files.unreadable_input import note_missing
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import recorded_end
from kafkalog.words import counted, first_names, printable

# A sentence names at most this many partitions.
_MOST_NAMED = 5
# A partition of one cluster.
_Place = tuple[str | None, int]


class MissingRecords(NamedTuple):
    """Offsets of a partition that no log of the input reaches, `end_offset` not included, and who
    knows of them, in words: the checkpoints or indexes of a directory."""

    cluster_id: str | None
    topic: str
    partition: int
    first_offset: int
    end_offset: int
    known_by: str

    @property
    def offsets(self) -> int:
        """How many offsets are missing."""
        return self.end_offset - self.first_offset

    def words(self) -> str:
        """Return a sentence about it."""
        return printable(
            f"{self.topic}-{self.partition}: offsets {self.first_offset} to {self.end_offset - 1} "
            f"are missing: {self.known_by} say that the log went on to {self.end_offset}"
        )


def note_missing_records(logs: Iterable[PartitionLog], topic: str) -> list[MissingRecords]:
    """Return what `missing_records` does, and note it as input that cannot be read: the run names
    it in its last lines and ends with exit code 3."""
    found = missing_records(logs, topic)
    for each in found:
        note_missing(each.words())
    return found


def missing_records(logs: Iterable[PartitionLog], topic: str) -> list[MissingRecords]:
    """Return the missing ends of a topic's partitions (F76), by cluster and number, and partitions
    that only checkpoints name (F940). Reads the headers of each partition's last segment. `logs`
    are all under the paths. Raises OSError."""
    found = list(logs)
    own = [log for log in found if log.topic == topic and log.is_live and log.partition is not None]
    ends: dict[_Place, int] = defaultdict(int)
    known: dict[_Place, tuple[int, str]] = {}

    def know(place: _Place, end_offset: int, known_by: str) -> None:
        if end_offset > known.get(place, (0, ""))[0]:
            known[place] = end_offset, known_by

    log_ends = answers(lambda log: log_end_offset(log, check_crcs=False), own, lambda log: log.path)
    for log, log_end in zip(own, log_ends, strict=True):
        place = log.log_dir.cluster_id, log.partition or 0
        ends[place] = max(ends[place], log_end)
        recorded = recorded_end(log)
        know(place, recorded.offset, f"the checkpoints of {log.log_dir.path}")
        missing = missing_end(log_end, 0, recorded)
        if missing is not None and missing.last_offset is not None:
            know(place, missing.last_offset + 1, f"the indexes in {log.path}")
    # A path that was given itself leaves its neighbours out on purpose.
    for log_dir in {log.log_dir.path: log.log_dir for log in found if not log.is_named}.values():
        for checkpoint in (log_dir.high_watermarks, log_dir.recovery_points):
            for (name, partition), end_offset in checkpoint.items():
                if name == topic:
                    place = log_dir.cluster_id, partition
                    know(place, end_offset, f"the checkpoints of {log_dir.path}")
    return [
        MissingRecords(place[0], topic, place[1], ends[place], *known[place])
        for place in sorted(known, key=lambda place: (place[0] or "", place[1]))
        if known[place][0] > ends[place]
    ]


def missing_words(missing: Sequence[MissingRecords]) -> str:
    """Return how many offsets are missing, and where, such as `455 offsets are missing: 31 of
    __consumer_offsets-1, 55 of __consumer_offsets-2 and 4 more`."""
    places = [f"{each.offsets:,} of {each.topic}-{each.partition}" for each in missing]
    offsets = sum(each.offsets for each in missing)
    verb = "is" if offsets == 1 else "are"
    return f"{counted(offsets, 'offset')} {verb} missing: {first_names(places, _MOST_NAMED)}"


def refuse_unknown_of_records(
    option: str,
    kind: str,
    named: Collection[str],
    known: Callable[[], Collection[str | None]],
    missing: Sequence[MissingRecords],
    hint: str = "",
) -> None:
    """Raise for names that records do not have: LogDirError where records are missing that may be
    about them, else OptionError. `kind` is a word such as `group`, `named` are names without rows,
    and `known` is called for all names where there are such; `hint` says where else to look."""
    names = sorted(named)
    if names and missing:
        raise LogDirError(
            f"the records that are here say nothing of {kind} {', '.join(names)}, and others may: "
            f"{missing_words(missing)}; give the log directories of all brokers, or another copy"
        )
    if names:
        refuse_unknown(option, names, known(), f"{kind}s of the log directories", hint)
