"""Why a partition's leader or in-sync replicas changed. Rule: docs/format.md F1244.

A controller writes what it does about an event at once, with one time: the record about the broker
and those about all partitions that it concerns. Without such a record the change itself says what
it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from kafkalog.coordination.metadata.image import Change, Row
from kafkalog.inspection.metadata.replay import MetadataChange

_NO_LEADER = -1
_RECOVERING = "RECOVERING"
_LEFT, _CAME = True, False
_REASSIGNED = ("replicas", "adding_replicas", "removing_replicas")


class Cause(NamedTuple):
    """Why something changed, in words, and the offset of the record about it, None where the change
    itself says it."""

    words: str
    offset: int | None = None


class _Event(NamedTuple):
    """What happened to a broker, and whether it left then."""

    broker: int
    has_left: bool
    cause: Cause


def with_causes(changes: Iterable[MetadataChange]) -> Iterator[tuple[MetadataChange, Cause | None]]:
    """Yield changes in their order, each with its cause; None for changes of
    anything else than a partition."""
    for _, found in groupby(changes, lambda each: each.timestamp_ms):
        at_once = list(found)
        events = [event for each in at_once if (event := _event(each)) is not None]
        for each in at_once:
            yield each, _cause(each.change, events)


def cause_row(cause: Cause | None) -> dict[str, str | int | None]:
    """Return the columns about a cause."""
    found = Cause("") if cause is None else cause
    return {"cause": found.words or None, "cause_offset": found.offset}


def _event(each: MetadataChange) -> _Event | None:
    """Return what a change did to a broker."""
    change = each.change
    if change.table != "broker" or change.old is None:
        return None
    broker, old, new = change.key[0], change.old, change.new

    def event(words: str, *, has_left: bool) -> _Event:
        return _Event(broker, has_left, Cause(f"broker {broker} {words}", each.offset))

    if new is None:
        return event("was unregistered", has_left=_LEFT)
    if new.get("is_in_controlled_shutdown") and not old.get("is_in_controlled_shutdown"):
        return event("shut down", has_left=_LEFT)
    if new["is_fenced"] and not old["is_fenced"]:
        return event("was fenced: no heartbeat, or it has stopped", has_left=_LEFT)
    if old["is_fenced"] and not new["is_fenced"]:
        return event("was unfenced", has_left=_CAME)
    if new.get("broker_epoch") != old.get("broker_epoch"):
        return event("started again without a shutdown", has_left=_LEFT)
    return None


def _cause(change: Change, events: Iterable[_Event]) -> Cause | None:
    if change.table != "partition" or change.old is None or change.new is None:
        return None
    old, new = change.old, change.new
    left, came = moved_brokers(old, new)
    unclean = ", unclean election" if is_unclean(old, new) else ""
    for event in events:
        if event.broker in (left if event.has_left else came):
            return event.cause._replace(words=event.cause.words + unclean)
    return cause_by_itself(old, new)


def moved_brokers(old: Row, new: Row) -> tuple[set[int], set[int]]:
    """Return the brokers that a change takes from a partition's leaders and in-sync replicas, and
    those that it adds."""
    before, after = set(old["isr"]), set(new["isr"])
    left, came = before - after, after - before
    if old["leader"] != new["leader"]:
        left.add(old["leader"])
        came.add(new["leader"])
    return left - {_NO_LEADER}, came - {_NO_LEADER}


def is_unclean(old: Row, new: Row) -> bool:
    """Return whether a change elected a leader that may lack records."""
    if new["leader"] in (old["leader"], _NO_LEADER):
        return False
    is_marked = new.get("leader_recovery_state") == _RECOVERING
    known = [*old["isr"], *(old.get("eligible_leader_replicas") or ())]
    return (is_marked and old.get("leader_recovery_state") != _RECOVERING) or (
        bool(known) and new["leader"] not in known
    )


def cause_by_itself(old: Row, new: Row) -> Cause | None:
    """Return the cause of a change that no record about a broker comes with."""
    unclean = ", unclean election" if is_unclean(old, new) else ""
    left, came = (sorted(each) for each in moved_brokers(old, new))
    names = ", ".join(map(str, left or came))
    if any(old.get(name) != new.get(name) for name in _REASSIGNED):
        return Cause("reassignment" + unclean)
    if old["leader"] != new["leader"]:
        if unclean:
            return Cause("unclean election")
        is_preferred = new["replicas"][:1] == [new["leader"]]
        return Cause("the preferred leader was elected" if is_preferred else "a leader was elected")
    if left:
        return Cause(f"broker {names} fell behind: the leader removed it from those in sync")
    if came:
        return Cause(f"broker {names} caught up")
    if old.get("directories") != new.get("directories"):
        return Cause("a replica is in another log directory")
    return None
