"""A group whose partitions the server assigns: ConsumerGroupHeartbeat (KIP-848).

A member that is to lose partitions gives them up first, and only then others get them. All of it
runs in one event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.messages.schema import Values
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.held_bytes import HeldBytes, memory_of
from kafkalog.server.protocol.requests import RefusedRequestError, Request

_JOINING, _LEAVING, _LEAVING_FOR_A_WHILE = 0, -1, -2
HEARTBEAT_INTERVAL_MS = 1000
_SESSION_SECONDS = 45
_MOST_MEMBERS = 1000
# What a member takes beside its texts, and a name of a topic.
_MEMBER_BYTES, _NAME_BYTES = 2000, 100
_UNIFORM, _RANGE = "uniform", "range"

# Partitions by topic: of each topic its name and its number of partitions.
Topics = Mapping[str, Sequence[int]]
Partition = tuple[str, int]


@dataclass(eq=False)
class ConsumerMember:
    """A member. `assigned` are the partitions that it reads, `leaving` those that it has to give
    up, and has not said that it did. `matched` are the topics that `regex` matches."""

    group: ConsumerGroup
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    epoch: int = 0
    last_epoch: int = 0
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    matched: frozenset[str] = frozenset()
    assignor: str | None = None
    assigned: set[Partition] = field(default_factory=set)
    leaving: set[Partition] = field(default_factory=set)
    target: set[Partition] = field(default_factory=set)
    expiry: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        """The member, for a message."""
        return f"{self.group.name}, member {self.member_id}"

    @property
    def size(self) -> int:
        """About how many bytes of memory the member takes."""
        texts = self.member_id, self.instance_id, self.rack_id, self.client_id, self.regex
        names = memory_of(self.topics) + _NAME_BYTES * (len(self.topics) + len(self.matched))
        return _MEMBER_BYTES + memory_of(texts) + names

    def drop(self) -> None:
        """Remove the member from its group."""
        self.group.remove(self)


class ConsumerGroup:
    """A group of the consumer protocol. `epoch` is the one before its first."""

    def __init__(
        self,
        group_id: str,
        held: HeldBytes,
        topics: Topics,
        name_of: Callable[[str], str | None],
        epoch: int = 0,
    ) -> None:
        """`held` counts what members take in memory; `topics` are all there are, with their
        partitions; `name_of` gives the topic of an id."""
        self.group_id = group_id
        self.name = f"group {group_id}"
        self._held = held
        self.epoch = epoch
        self.members: dict[str, ConsumerMember] = {}
        self._topics = topics
        self._name_of = name_of

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for."""
        asked = [each.assignor for each in self.members.values() if each.assignor]
        return max(sorted(set(asked)), key=asked.count, default=_UNIFORM)

    @property
    def state(self) -> str:
        """The state, as a broker names it."""
        if not self.members:
            return "Empty"
        is_stable = all(
            each.epoch == self.epoch and each.assigned == each.target and not each.leaving
            for each in self.members.values()
        )
        return "Stable" if is_stable else "Reconciling"

    def heartbeat(self, request: Request, matched: frozenset[str]) -> Values:
        """Answer ConsumerGroupHeartbeat; `matched` are the topics that its expression matches.
        Raises RefusedRequestError for a member that takes too much memory."""
        values = request.values
        epoch = values["memberEpoch"]
        if epoch in (_LEAVING, _LEAVING_FOR_A_WHILE):
            return self._leave(values)
        member, error = self._member(request)
        if member is None:
            return {"errorCode": error, "memberId": values["memberId"], "memberEpoch": epoch}
        self._heard_of(member)
        is_changed = self._subscribe(member, values, matched)
        if isinstance(is_changed, ErrorCode):
            return {"errorCode": is_changed, "memberId": member.member_id, "memberEpoch": epoch}
        if is_changed or epoch == _JOINING:
            self._assign()
        before = set(member.assigned)
        self._reconcile(member, values["topicPartitions"])
        answer: Values = {
            "errorCode": ErrorCode.NONE,
            "memberId": member.member_id,
            "memberEpoch": member.epoch,
            "heartbeatIntervalMs": HEARTBEAT_INTERVAL_MS,
        }
        if epoch == _JOINING or member.assigned != before:
            answer["assignment"] = {"topicPartitions": self.by_topic(member.assigned)}
        return answer

    def by_topic(self, partitions: set[Partition]) -> list[Values]:
        """Return partitions as a response lists them, the topics by their names; whoever answers
        puts ids in their place."""
        found: dict[str, list[int]] = {}
        for topic, number in sorted(partitions):
            found.setdefault(topic, []).append(number)
        return [{"topicName": topic, "partitions": numbers} for topic, numbers in found.items()]

    def close(self) -> None:
        """Cancel all timers."""
        for member in self.members.values():
            _cancel(member.expiry)

    def check(self, member_id: str, epoch: int) -> ErrorCode:
        """Return what is wrong with a member's commit or question."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def _member(self, request: Request) -> tuple[ConsumerMember | None, ErrorCode]:
        values = request.values
        member_id, instance_id, epoch = (
            values[name] for name in ("memberId", "instanceId", "memberEpoch")
        )
        member = self.members.get(member_id)
        if epoch == _JOINING:
            same = self._with_instance(instance_id)
            if same is not None and same is not member:
                self._forget(same)
            if member is None:
                if len(self.members) >= _MOST_MEMBERS:
                    return None, ErrorCode.GROUP_MAX_SIZE_REACHED
                member_id = member_id or str(uuid.uuid4())
                member = ConsumerMember(
                    *(self, member_id, instance_id, values["rackId"]),
                    *(request.client_id, request.client_host),
                )
                self.members[member_id] = member
            # Whoever joins has nothing.
            member.assigned, member.leaving = set(), set()
            return member, ErrorCode.NONE
        if member is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        # The answer with the newest epoch may not have come to the member.
        if epoch not in (member.epoch, member.last_epoch):
            return None, ErrorCode.FENCED_MEMBER_EPOCH
        return member, ErrorCode.NONE

    def _with_instance(self, instance_id: str | None) -> ConsumerMember | None:
        if instance_id is None:
            return None
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def _subscribe(
        self, member: ConsumerMember, values: Values, matched: frozenset[str]
    ) -> bool | ErrorCode:
        """Take what the member subscribes to; return whether that changes anything."""
        before = member.topics, member.regex, member.assignor
        names, regex = values["subscribedTopicNames"], values.get("subscribedTopicRegex")
        assignor = values["serverAssignor"]
        if assignor is not None:
            if assignor not in (_UNIFORM, _RANGE):
                return ErrorCode.UNSUPPORTED_ASSIGNOR
            member.assignor = assignor
        if names is not None:
            member.topics = frozenset(names)
        if regex is not None:
            member.regex, member.matched = regex or None, matched
        try:
            self._held.put(member, member.size)
        except RefusedRequestError:
            self.remove(member)
            raise
        return before != (member.topics, member.regex, member.assignor)

    def _leave(self, values: Values) -> Values:
        epoch = values["memberEpoch"]
        member = self.members.get(values["memberId"]) or self._with_instance(values["instanceId"])
        answer = {"memberId": values["memberId"], "memberEpoch": epoch}
        if member is None:
            return {**answer, "errorCode": ErrorCode.UNKNOWN_MEMBER_ID}
        self.remove(member)
        return {**answer, "errorCode": ErrorCode.NONE}

    def remove(self, member: ConsumerMember) -> None:
        """Remove a member, and give its partitions to others."""
        self._forget(member)
        self._assign()

    def _forget(self, member: ConsumerMember) -> None:
        _cancel(member.expiry)
        self._held.clear(member)
        self.members.pop(member.member_id, None)

    def _expire(self, member: ConsumerMember) -> None:
        if self.members.get(member.member_id) is member:
            self.remove(member)

    def _heard_of(self, member: ConsumerMember) -> None:
        _cancel(member.expiry)
        loop = asyncio.get_running_loop()
        member.expiry = loop.call_later(_SESSION_SECONDS, self._expire, member)

    def _readers(self) -> dict[str, list[str]]:
        """Return the members that subscribe to each topic, in the order of their ids."""
        found: dict[str, list[str]] = {}
        for key in sorted(self.members):
            member = self.members[key]
            for topic in member.matched.union(member.topics):
                if topic in self._topics:
                    found.setdefault(topic, []).append(key)
        return found

    def _assign(self) -> None:
        """Give each partition a member of those that subscribe to its topic, in a new epoch."""
        self.epoch += 1
        targets: dict[str, set[Partition]] = {key: set() for key in self.members}
        owners = {each: key for key, member in self.members.items() for each in member.assigned}
        is_range = self.assignor == _RANGE
        for topic, readers in sorted(self._readers().items()):
            numbers = self._topics[topic]
            if is_range:
                for place, number in enumerate(numbers):
                    reader = readers[place * len(readers) // len(numbers)]
                    targets[reader].add((topic, number))
            else:
                self._share(topic, readers, owners, targets)
        for key, member in self.members.items():
            member.target = targets[key]

    def _share(
        self,
        topic: str,
        readers: Sequence[str],
        owners: Mapping[Partition, str],
        targets: Mapping[str, set[Partition]],
    ) -> None:
        """Give each partition of a topic the reader with the fewest partitions; of those, the one
        that has it."""
        lightest = [(len(targets[key]), key) for key in readers]
        heapq.heapify(lightest)
        subscribed = frozenset(readers)
        for number in self._topics[topic]:
            # Those that got a partition as its owner are heavier than the heap says.
            while lightest[0][0] != len(targets[lightest[0][1]]):
                key = lightest[0][1]
                heapq.heapreplace(lightest, (len(targets[key]), key))
            fewest, reader = lightest[0]
            owner = owners.get((topic, number))
            if owner in subscribed and len(targets[owner]) == fewest:
                reader = owner
            targets[reader].add((topic, number))

    def _reconcile(self, member: ConsumerMember, owned: Sequence[Values] | None) -> None:
        """Bring a member closer to its target; `owned` is what it says that it has."""
        if owned is not None:
            has = {
                (name, number)
                for each in owned
                if (name := self._name_of(each["topicId"])) is not None
                for number in each["partitions"]
            }
            member.leaving &= has
        surplus = member.assigned - member.target
        if surplus:
            member.assigned -= surplus
            member.leaving |= surplus
        if member.leaving:
            return
        if member.epoch != self.epoch:
            member.last_epoch, member.epoch = member.epoch, self.epoch
        missing = member.target - member.assigned
        if missing:
            others = [each for each in self.members.values() if each is not member]
            member.assigned |= missing.difference(
                *(each.assigned for each in others), *(each.leaving for each in others)
            )


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
