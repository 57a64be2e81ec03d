"""Which coordinators of groups, transactions and share groups load their partitions at a broker's
next start, and which record stops one?

Rules: docs/format.md F1000 to F1008.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from kafkalog.coordination.metadata.releases import known_release
from kafkalog.inspection.groups.coordinator_loading import (
    COORDINATED,
    Consequence,
    CoordinatorLoad,
    CoordinatorRules,
    coordinator_load,
)
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.views.engine import Views
from kafkalog.words import counted, first_names

_COORDINATORS = {
    CONSUMER_OFFSETS: ("group coordinator", "group"),
    TRANSACTION_STATE: ("transaction coordinator", "transactional id"),
    SHARE_GROUP_STATE: ("share coordinator", "share group"),
}
# The most groups and records that a sentence names.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """The version of Kafka that starts, None for the newest known; and whether it has the new group
    coordinator, which settings of 3.9 can choose."""

    kafka_version: str | None = None
    has_new_groups: bool = False

    @property
    def rules(self) -> CoordinatorRules:
        """The rules of this version. Raises OptionError if the version is not known."""
        release = known_release(self.kafka_version)
        return CoordinatorRules.of(release, has_new_groups=self.has_new_groups)


def coordinators(
    views: Views, settings: CoordinatorSettings, ends: Mapping[str, int | None] | None = None
) -> list[CoordinatorLoad]:
    """Return how the coordinators load the live logs of the views, in the order of the logs;
    without those that the version does not have. `ends` has by directory where logs end once a
    broker has started; None for one that it does not load. Raises OptionError."""
    found = [log for log in views.logs if is_coordinated(log)]
    if ends is not None:
        found = [log for log in found if ends.get(log.path) is not None]
    own = {log.path: ends[log.path] for log in found} if ends is not None else {}
    return list(views.tasks(partial(_loads, rules=settings.rules, ends=own), found))


def is_coordinated(log: PartitionLog) -> bool:
    """Return whether a log is one that a coordinator loads."""
    is_served = log.is_live and log.partition is not None and not is_oldest_layout(log)
    return is_served and log.topic in COORDINATED


def _loads(
    log: PartitionLog, rules: CoordinatorRules, ends: Mapping[str, int | None]
) -> Iterator[CoordinatorLoad]:
    found = coordinator_load(log, rules, ends.get(log.path))
    if found is not None:
        yield found


def load_words(load: CoordinatorLoad, release: str) -> list[str]:
    """Return sentences about what a coordinator of a release does not load, or passes over; none
    where there is nothing to say."""
    coordinator, _ = _COORDINATORS[load.topic]
    place = f"{load.topic}-{load.partition}"
    sentences = []
    if load.offset is not None:
        record = "record" if load.record_name is None else f"record {load.record_name}"
        sentences.append(
            f"the {coordinator} of Kafka {release} does not load {place}: {record} at offset "
            f"{load.offset}: {load.reason}; {_consequence_words(load)}"
        )
    if load.unserved:
        sentences.append(
            f"{place}: a tombstone for a classic group removes "
            f"{first_names(load.unserved, _MOST_NAMED)}, of another type: no client gets the "
            "commits that are there until the group commits again"
        )
    if load.skipped_records:
        first = load.skipped[0]
        sentences.append(
            f"the {coordinator} passes over {counted(load.skipped_records, 'record')} of {place}, "
            f"the first at offset {first.offset}: {first.reason}"
        )
    if load.damage is not None:
        sentences.append(f"{place} is damaged, and records there were not judged: {load.damage}")
    return sentences


def _consequence_words(load: CoordinatorLoad) -> str:
    thing = _COORDINATORS[load.topic][1]
    waiting = counted(load.waiting, thing)
    has = "has" if load.waiting == 1 else "have"
    if load.consequence is Consequence.WAIT:
        return (
            f"{waiting} {has} no coordinator until another version starts or the record is removed"
        )
    if load.consequence is Consequence.EMPTY:
        return (
            f"the broker answers as if there were no groups: {waiting} {has} no commits there, and "
            "consumers begin where auto.offset.reset says"
        )
    return (
        f"the broker goes on with what was before this record: {waiting} {has} an older state or "
        "none, and open transactions of theirs may never end"
    )
