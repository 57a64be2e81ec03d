"""What of a restore is not exact, or not whole: what --strict refuses. Rules: docs/restore.md
F1206, F1216 to F1218 and F1314.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.inspection.erasure.suppression import undecoded_words
from kafkalog.questions.restore.groups import RestoredCommit
from kafkalog.questions.restore.partitions.partition_plans import PartitionPlan
from kafkalog.questions.restore.planning import RestorePlan
from kafkalog.questions.restore.restoring import Restored
from kafkalog.words import counted, first_names, time_text

_MOST_NAMES = 5


def not_exact(found: Restored) -> Iterator[str]:
    """Yield what of the result is not exact, or not whole, with partitions and offsets."""
    plan = found.plan
    if plan.sources.unread is not None:
        yield from plan.sources.unread.lines()
    for each in plan.uncovered:
        until = "an unknown time" if each.covered_ms is None else time_text(each.covered_ms)
        yield (
            f"{each.name}: no copy goes up to the moment: records after {until}, from offset "
            f"{each.cut} on, may be missing"
        )
    for each in plan.plans:
        yield from _of_partition(each)
        if plan.request.into is not None:
            yield from _without_checkpoint(each)
    yield from _of_commits(found)
    yield from _of_transactions(plan)
    for left in plan.left_out:
        if not left.is_chosen:
            yield f"{left.topic} is left out: {left.reason}"
    yield from _of_suppression(found)
    yield from _of_groups(found)


def _of_suppression(found: Restored) -> Iterator[str]:
    for topic, suppressed in found.left_out_persons:
        if suppressed.undecoded:
            yield undecoded_words(topic, suppressed.undecoded)
        if suppressed.unsearched:
            yield (
                f"{topic}: {suppressed.unsearched} bytes could not be searched for --suppress, and "
                "were kept"
            )


def _of_groups(found: Restored) -> Iterator[str]:
    for partition, groups in found.groups.items():
        if groups.doubtful:
            names = first_names(sorted(groups.doubtful), _MOST_NAMES)
            yield (
                f"__consumer_offsets-{partition}: the cleaner can have removed what was in force "
                f"for {counted(sum(groups.doubtful.values()), 'key')} of {names}: commits may be "
                "earlier than at the moment, or missing"
            )
        if groups.unreadable:
            yield (
                f"__consumer_offsets-{partition}: {groups.unreadable} records cannot be read, and "
                "are kept as they are"
            )


def _of_partition(each: PartitionPlan) -> Iterator[str]:
    if each.is_cleaned_beyond:
        yield (
            f"{each.name}: the cleaner of each copy has looked at records after the cut, offset "
            f"{each.cut}: keys that were written again since may lack the record that was in force"
        )
    if each.cut == each.old_end < each.known_end:
        yield (
            f"{each.name}: a checkpoint beside a copy has offset {each.known_end}, and the copies "
            f"end at {each.old_end}: the records between are missing"
        )
    if each.tiered_from is not None:
        yield (
            f"{each.name}: offsets {each.tiered_from} to {each.start - 1} are in tiered storage, "
            "which was not given"
        )
    if each.deleted_ms is not None:
        yield (
            f"{each.name}: a client has deleted the records before offset {each.deleted_to} at "
            f"{time_text(each.deleted_ms)}, after the moment: those from offset {each.start} on "
            "are here again, also ones that may have been deleted before it"
        )
    elif each.deleted_to is not None:
        yield (
            f"{each.name}: a client has deleted the records before offset {each.start}; whether "
            "before the moment or after it nothing says: they stay deleted"
        )
    for start, end in each.missing:
        if start < each.cut:
            yield (
                f"{each.name}: offsets {start} to {end - 1} are neither in tiered storage nor on a "
                "disk"
            )
    for lost in each.lost:
        yield (
            f"{each.name}: {lost.size} bytes at position {lost.position} of {lost.path} are left "
            f"out: {lost.reason}"
        )


def _without_checkpoint(each: PartitionPlan) -> Iterator[str]:
    """Yield that the cluster's own checkpoint does not have the start of a log (F1314)."""
    first = each.segments[0].base_offset if each.segments else each.start
    if first < each.start:
        yield (
            f"{each.name}: records from offset {first} to {each.start - 1} had been deleted, and "
            "are here again, unless log-start-offset-checkpoint of each broker gets the line "
            f"{each.topic} {each.partition} {each.start}"
        )


def _of_commits(found: Restored) -> Iterator[str]:
    """Yield partitions of which records were consumed by the moment that no copy has."""
    ends = {each.key: each.old_end for each in found.plan.plans}
    highest: dict[tuple[str, int], RestoredCommit] = {}
    for groups in found.groups.values():
        for commit in groups.commits:
            key = commit.topic, commit.partition
            known = highest.get(key)
            if commit.offset_before > ends.get(key, commit.offset_before) and (
                known is None or known.offset_before < commit.offset_before
            ):
                highest[key] = commit
    for key, commit in highest.items():
        yield (
            f"{commit.topic}-{commit.partition}: group {commit.group_id} had committed offset "
            f"{commit.offset_before} by the moment, and the copies end at {ends[key]}: the records "
            "between are missing"
        )


def _of_transactions(plan: RestorePlan) -> Iterator[str]:
    for ended in plan.ended:
        if ended.is_guess:
            yield (
                f"{ended.topic}-{ended.partition}: the transaction of producer "
                f"{ended.producer_id} from offset {ended.first_offset} on is aborted: "
                f"{ended.reason}"
            )
    for name, topic, number in plan.incomplete:
        yield (
            f"{topic}-{number}: the commit of transaction {name} was decided, and records of it "
            "may be missing here: the transaction is not whole"
        )
