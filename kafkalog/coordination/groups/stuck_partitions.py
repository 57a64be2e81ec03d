"""Why a group does not read on in a partition, and what to do. Rule: docs/format.md F781."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.coordination.groups.commit_status import BEYOND_LOG_END, COUNTED, NO_COMMIT
from kafkalog.words import counted, duration_text, time_text

_ONGOING = "Ongoing"
# How often a consumer commits by itself, without another auto.commit.interval.ms.
_USUAL_COMMIT_MS = 5_000
# Before a line to type: nothing follows it.
_COMMAND = "\n    "

_CONSUMERS = "consumer"
# Programs that are in a group to divide other work than the partitions of topics.
_NO_CONSUMERS = {
    "connect": (
        "workers of Kafka Connect, which divide connectors and tasks among them",
        "The consumers of a sink connector are in the group connect-CONNECTOR.",
    ),
    "sr": ("instances of Schema Registry, which choose a leader", ""),
}


def why_without_partitions(protocol_type: str | None, members: int) -> tuple[str, str]:
    """Return the reason why a group has neither committed offsets nor assigned partitions, and what
    to do. Rule: docs/format.md F781."""
    if protocol_type and protocol_type != _CONSUMERS:
        unknown = f"programs with the group protocol {protocol_type}", ""
        who, more = _NO_CONSUMERS.get(protocol_type, unknown)
        missing = "" if members else " None of them is in the group."
        words = f"Its members are {who}: it reads no topic and commits no offsets.{missing} {more}"
        return "no_consumers", words.rstrip()
    if members:
        return "not_assigned", "No member has a partition: look at what the members subscribe to."
    return "no_members", "Nothing was committed, and no consumer is in the group: start one."


@dataclass(frozen=True, slots=True)
class HoldingTransaction:
    """An open transaction in a partition: what its producer wrote there, and what its coordinator
    says of it, None where that is not known."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int | None
    is_hanging: bool
    transactional_id: str | None = None
    state: str | None = None
    started_ms: int | None = None
    timeout_ms: int | None = None

    @property
    def ends_ms(self) -> int | None:
        """When its coordinator aborts it by itself, None if unknown or never."""
        if self.is_hanging or self.state != _ONGOING:
            return None
        if self.started_ms is None or self.timeout_ms is None:
            return None
        return self.started_ms + self.timeout_ms

    def words(self, at_ms: int) -> str:
        """Return who holds it since when and how it ends, as seen at a time."""
        who = f"producer {self.producer_id}"
        if self.transactional_id is not None:
            who += f" (transactional.id {self.transactional_id})"
        since = "" if self.started_ms is None else f", begun at {time_text(self.started_ms)}"
        again = "" if self.transactional_id is None else ", or start that producer again"
        if self.is_hanging:
            place = f"--topic {self.topic} --partition {self.partition}"
            end = (
                f"no coordinator will end it:{_COMMAND}kafka-transactions --bootstrap-server "
                f"HOST:PORT abort {place} --start-offset {self.first_offset}"
            )
        elif self.ends_ms is None:
            end = (
                "when it ends is not known: give the log directories of all brokers, which have "
                f"__transaction_state{again}"
                if self.state is None
                else f"its coordinator ends it as soon as it runs: its state is {self.state}"
            )
        elif self.ends_ms > at_ms:
            end = (
                f"its coordinator aborts it at {time_text(self.ends_ms)}, in "
                f"{duration_text(self.ends_ms - at_ms)}: wait{again}"
            )
        else:
            end = (
                f"its time was over at {time_text(self.ends_ms)}: its coordinator aborts it as "
                f"soon as it runs: start the brokers{again}"
            )
        return f"the transaction of {who}{since}; {end}"


class PartitionOfGroup(NamedTuple):
    """What decides why a group does not read on. Numbers of records are those that readers of
    committed records see; `is_held` says that nothing is left to read before an open transaction;
    `moved_ms` is since when its offset is the same, `pending_offset` that of a commit that waits
    for its transaction, `holder` the transaction that it waits for; `log_path` is where the log
    is, and `known_until_ms` the time of the newest record of the group's or of the partition's."""

    topic: str
    partition: int
    group_type: str | None
    group_state: str | None
    members: int
    status: str
    committed_offset: int | None
    last_stable_offset: int | None
    to_read: int | None
    is_held: bool
    lost: int
    ahead: int
    damaged: int
    next_offset: int | None
    moved_ms: int | None
    member: str | None
    pending_offset: int | None = None
    holder: HoldingTransaction | None = None
    log_path: str | None = None
    known_until_ms: int | None = None

    def why(self, at_ms: int) -> tuple[str, str]:
        """Return the reason, the first in docs/questions.md that applies, and what to do."""
        for reason, words in (self._of_commit(at_ms), self._of_log(at_ms), self._of_members()):
            if reason:
                return reason, words
        return "nothing_to_read", "It has read everything: there is nothing to do."

    def _of_commit(self, at_ms: int) -> tuple[str, str]:
        if self.pending_offset is not None:
            by = "a transaction that is not found" if not self.holder else self.holder.words(at_ms)
            return "pending_commit", _sentence(
                f"Its commit of offset {self.pending_offset} waits for {by}"
            )
        if self.status == BEYOND_LOG_END:
            return self.status, (
                f"The log ends {counted(self.ahead, 'offset')} before its commit: its copy was "
                "taken before that of the commits, or the log was cut or its topic made again: "
                "then kafka-consumer-groups --reset-offsets chooses a place."
            )
        if self.status not in (*COUNTED, NO_COMMIT):
            return self.status, (
                f"Its commit does not count ({self.status}): consumers begin where "
                "auto.offset.reset says; kafka-consumer-groups --reset-offsets chooses a place."
            )
        if self.to_read is None and self.committed_offset is not None:
            return "unknown", "There is no log of it here: give the log directories of all brokers."
        return "", ""

    def _of_log(self, at_ms: int) -> tuple[str, str]:
        if self.lost and self.group_type != "share":
            return "lost_records", (
                f"{counted(self.lost, 'offset')} from {self.committed_offset} on were deleted "
                "before it read them: consumers continue where auto.offset.reset says; "
                "kafka-consumer-groups --reset-offsets chooses a place."
            )
        if self.is_held:
            by = "an open transaction" if not self.holder else self.holder.words(at_ms)
            return "open_transaction", _sentence(
                f"Readers of committed records wait at offset {self.last_stable_offset} for {by}"
            )
        if self.damaged and not self.to_read:
            return "damaged", (
                f"Damage hides {counted(self.damaged, 'offset')}: `kafkalog check` shows where, "
                "`kafkalog salvage` keeps the rest."
            )
        return "", ""

    def _of_members(self) -> tuple[str, str]:
        since = "" if self.moved_ms is None else f" since {time_text(self.moved_ms)}"
        moved = f"Nothing moved{since}"
        if not self.to_read and self.committed_offset is not None:
            return "", ""
        if not self.members:
            return "no_members", f"No consumer is in the group: start one. {moved}."
        if self.group_state not in (None, "Stable"):
            return "rebalancing", (
                f"The group is {self.group_state}: look for a member that joins and leaves again "
                "(max.poll.interval.ms, session.timeout.ms)."
            )
        if self.member is None and self.group_type not in ("share", "streams"):
            return "not_assigned", (
                "No member has the partition: look at what the members subscribe to."
            )
        who = "its members" if self.member is None else self.member
        if self.committed_offset is None:
            return "no_commit", f"Nothing was committed yet: look at the log of {who}."
        range_of_next = f"{self.next_offset}:{(self.next_offset or 0) + 1}"
        if self.moved_ms is not None and self.known_until_ms is not None:
            known_ms = self.known_until_ms - self.moved_ms
            if known_ms < _USUAL_COMMIT_MS:
                moved = (
                    f"It moved at {time_text(self.moved_ms)}, {duration_text(max(known_ms, 0))} "
                    "before the newest record here: nothing shows that it has stopped. If these "
                    "files are much later than that"
                )
        return "member_is_behind", (
            f"{moved}: look at the log of {who}, and at the next record:{_COMMAND}"
            f"kafkalog dump --deep --offsets {range_of_next} {shlex.quote(self.log_path or 'PATH')}"
        )


def _sentence(words: str) -> str:
    """Return words with a full stop, but for those that end with a line to type."""
    return words if _COMMAND in words else f"{words}."
