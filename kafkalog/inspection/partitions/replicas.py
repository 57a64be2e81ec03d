"""What each replica of a partition has, beside the best one: view `replicas`,
schemas/tables/replicas.json. Rules: docs/format.md F171 to F176.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.table_rows import TableRow
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import OffsetSpan, merged
from kafkalog.inspection.logs.replica_facts import (
    batch_facts,
    replica_facts,
    replica_sets,
    sound_rows,
)
from kafkalog.storage.partition_log import PartitionLog, log_columns
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.replicas import BatchFact, ReplicaFacts, compare, epoch_divergence


def replica_rows(logs: Sequence[PartitionLog]) -> Iterator[TableRow]:
    """Yield a row for each replica of one partition, the best first."""
    (replicas,) = replica_sets(logs)
    facts = replicas.facts if len(logs) > 1 else (replica_facts(logs[0]),)
    contents = [_Content(log) for log in replicas.logs]
    latest_end = max(content.log_end for content in contents)
    for number, (log, content) in enumerate(zip(replicas.logs, contents, strict=True)):
        others = [other.spans for index, other in enumerate(contents) if index != number]
        damaged = content.damaged_ranges(latest_end, merged([span for o in others for span in o]))
        yield {
            **log_columns(log),
            "directory": log.path,
            "replicas": len(logs),
            "rank": number + 1,
            "log_start_offset": content.log_start,
            "log_end_offset": content.log_end,
            "leader_epoch": facts[number].last_epoch if facts[number].epochs else None,
            "leader_epochs": [entry._asdict() for entry in facts[number].epochs],
            **_compared(content, contents[0], facts[number], facts[0]),
            "damaged_bytes": sum(row[column.SIZE] for _, row in content.damaged),
            "damaged_ranges": damaged,
        }


def _compared(
    content: _Content, best: _Content, facts: ReplicaFacts, best_facts: ReplicaFacts
) -> TableRow:
    """Return which offsets a replica and the best one have in common, and where their ways part."""
    found = compare(content.sound, best.sound)
    by_epoch = epoch_divergence(facts, best_facts)
    by_content = found.different[0].start if found.different else None
    known = [offset for offset in (by_epoch, by_content) if offset is not None]
    diverges_at = min(known, default=None)
    reason = "content" if by_epoch is None or diverges_at != by_epoch else "leader_epoch"
    return {
        "diverges_at": diverges_at,
        "diverges_by": None if diverges_at is None else reason,
        "equal_ranges": [{**_range(span), "crc": crc} for span, crc in found.equal],
        "different_ranges": [_range(span) for span in found.different],
        "missing_ranges": [_range(span) for span in found.missing],
        "extra_ranges": [_range(span) for span in found.extra],
    }


def _range(span: OffsetSpan) -> dict[str, object]:
    return {"start_offset": span.start, "end_offset": span.end}


class _Content:
    """The sound batches of a log in the order of their offsets, and the rows of its damaged ranges
    with their files."""

    def __init__(self, log: PartitionLog) -> None:
        self.sound: list[BatchFact] = []
        self.damaged: list[tuple[str, list[int]]] = []
        for segment in log.segments:
            for table in sound_rows(segment):
                is_damaged = table[:, column.FAULT] != 0
                self.damaged += [(segment.path, row) for row in table[is_damaged].tolist()]
                self.sound += batch_facts(table[~is_damaged])
        self.log_start = log_bounds(log, EndRule.LOG_END).start_offset
        last = self.sound[-1].last_offset + 1 if self.sound else 0
        self.log_end = max(self.log_start, last)
        self.spans = merged(
            [OffsetSpan(fact.base_offset, fact.last_offset + 1) for fact in self.sound]
        )

    def damaged_ranges(self, latest_end: int, elsewhere: list[OffsetSpan]) -> list[TableRow]:
        """Return each damaged range with the offsets that may be lost there: up to the next sound
        batch or, after the last, to where the longest replica ends."""
        rows: list[TableRow] = []
        for path, row in self.damaged:
            start = row[column.EXPECTED_OFFSET]
            following = bisect_left(self.sound, start, key=attrgetter("base_offset"))
            is_last = following == len(self.sound)
            end = max(start, latest_end if is_last else self.sound[following].base_offset)
            lost = OffsetSpan(start, end)
            rows.append(
                {
                    **_range(lost),
                    "file": path,
                    "position": row[column.POSITION],
                    "bytes": row[column.SIZE],
                    "kind": Fault(row[column.FAULT]).label,
                    "is_elsewhere": _is_within(lost, elsewhere),
                }
            )
        return rows


def _is_within(span: OffsetSpan, merged_spans: list[OffsetSpan]) -> bool:
    """Return whether all of a span's offsets are in those spans."""
    number = bisect_right(merged_spans, span.start, key=attrgetter("start")) - 1
    return span.start == span.end or (number >= 0 and merged_spans[number].end >= span.end)
