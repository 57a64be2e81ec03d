"""A group whose members assign partitions among themselves: JoinGroup, SyncGroup, Heartbeat.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkalog.messages.schema import Values
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.held_bytes import HeldBytes, memory_of
from kafkalog.server.protocol.requests import RefusedRequestError, Request

EMPTY, STABLE = "Empty", "Stable"
PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
_LONGEST_SESSION_MS = 30 * 60 * 1000
# Members that join one after another find each other in the first generation.
_FIRST_WAIT_SECONDS = 0.3
_MOST_MEMBERS = 1000
_NO_GENERATION = -1
# What a member takes beside its texts and bytes, and a protocol of it.
_MEMBER_BYTES, _PROTOCOL_BYTES = 2000, 100
# The part of a member's id that the server has made up.
_UUID_CHARACTERS = 36
# From this version on a member that has no id gets one first, and joins with it.
_ID_IS_REQUIRED_SINCE = 4


@dataclass(eq=False)
class ClassicMember:
    """A member, and the requests of it that are waiting."""

    group: ClassicGroup
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_seconds: float = 10
    rebalance_seconds: float = 60
    protocols: list[tuple[str, bytes]] = field(default_factory=list)
    assignment: bytes = b""
    joining: asyncio.Future[Values] | None = None
    syncing: asyncio.Future[Values] | None = None
    expiry: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        """The member, for a message."""
        return f"{self.group.name}, member {self.member_id}"

    @property
    def size(self) -> int:
        """About how many bytes of memory the member takes."""
        own = memory_of((self.member_id, self.instance_id, self.client_id, self.assignment))
        listed = sum(_PROTOCOL_BYTES + memory_of(each) for each in self.protocols)
        return _MEMBER_BYTES + own + listed

    def drop(self) -> None:
        """Remove the member from its group."""
        self.group.leave(self.member_id, None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return what the member said for a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")


class ClassicGroup:
    """A classic group. `generation` is the one before its first; `held` counts what its members
    take in memory."""

    def __init__(self, group_id: str, held: HeldBytes, generation: int = 0) -> None:
        self.group_id = group_id
        self.name = f"group {group_id}"
        self._held = held
        self.state = EMPTY
        self.generation = generation
        self.protocol_type = ""
        self.protocol: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self._leader: str | None = None
        # The ends of ids that members got and have not joined with yet, the oldest first.
        self._given: dict[str, None] = {}
        self._is_first_wait = False
        self._expected: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def join(self, request: Request) -> Values:
        """Answer JoinGroup, once all members have joined."""
        values = request.values
        found = self._joining_member(request)
        if not isinstance(found, ClassicMember):
            return found
        protocols = [(each["name"], each["metadata"]) for each in values["protocols"]]
        if not self._fits(found, values["protocolType"], protocols):
            return _joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, found.member_id)
        session_ms = values["sessionTimeoutMs"]
        rebalance_ms = values.get("rebalanceTimeoutMs", -1)
        found.session_seconds = session_ms / 1000
        found.rebalance_seconds = (session_ms if rebalance_ms < 0 else rebalance_ms) / 1000
        found.protocols = protocols
        self._hold(found)
        self.protocol_type = values["protocolType"]
        self.members[found.member_id] = found
        self._expected.discard(found.member_id)
        _cancel(found.expiry)
        _answer(found.joining, _joined(ErrorCode.UNKNOWN_MEMBER_ID, found.member_id))
        found.joining = asyncio.get_running_loop().create_future()
        waiting = found.joining
        self._prepare()
        return await waiting

    def _hold(self, member: ClassicMember) -> None:
        """Count what a member takes in memory. Raises RefusedRequestError, without the member, if
        that is too much."""
        try:
            self._held.put(member, member.size)
        except RefusedRequestError:
            if member.member_id in self.members:
                self._remove(member, ErrorCode.UNKNOWN_MEMBER_ID)
            raise

    def _joining_member(self, request: Request) -> ClassicMember | Values:
        """Return the member that joins, or the answer to one that cannot."""
        values = request.values
        member_id, instance_id = values["memberId"], values.get("groupInstanceId")
        if not 0 < values["sessionTimeoutMs"] <= _LONGEST_SESSION_MS:
            return _joined(ErrorCode.INVALID_SESSION_TIMEOUT, member_id)
        known = self.members.get(member_id)
        if instance_id is not None:
            same = next((m for m in self.members.values() if m.instance_id == instance_id), None)
            if same is not None and member_id and same.member_id != member_id:
                return _joined(ErrorCode.FENCED_INSTANCE_ID, member_id)
            if same is not None and not member_id:
                self._remove(same, ErrorCode.FENCED_INSTANCE_ID)
        if known is not None:
            return known
        if member_id and member_id[-_UUID_CHARACTERS:] not in self._given:
            return _joined(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        if len(self.members) >= _MOST_MEMBERS:
            return _joined(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id)
        if not member_id:
            member_id = f"{instance_id or request.client_id}-{uuid.uuid4()}"
            if request.version >= _ID_IS_REQUIRED_SINCE and instance_id is None:
                self._given[member_id[-_UUID_CHARACTERS:]] = None
                while len(self._given) > _MOST_MEMBERS:
                    del self._given[next(iter(self._given))]
                return _joined(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        self._given.pop(member_id[-_UUID_CHARACTERS:], None)
        return ClassicMember(self, member_id, instance_id, request.client_id, request.client_host)

    def _fits(
        self, member: ClassicMember, protocol_type: str, protocols: list[tuple[str, bytes]]
    ) -> bool:
        """Return whether there is a protocol that the member and all others know."""
        others = [each for each in self.members.values() if each is not member]
        names = {name for name, _ in protocols}
        if not protocol_type or not names:
            return False
        if others and protocol_type != self.protocol_type:
            return False
        return bool(_common(others, names))

    def _prepare(self) -> None:
        """Begin a rebalance, or see whether the one that runs is complete."""
        if self.state != PREPARING:
            self._is_first_wait = self.state == EMPTY
            self.state = PREPARING
            self._expected = {key for key, each in self.members.items() if each.joining is None}
            for member in self.members.values():
                failed = {"errorCode": ErrorCode.REBALANCE_IN_PROGRESS, "assignment": b""}
                _answer(member.syncing, failed)
            longest = max((each.rebalance_seconds for each in self.members.values()), default=0)
            seconds = _FIRST_WAIT_SECONDS if self._is_first_wait else longest
            _cancel(self._timer)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._complete)
        if not self._expected and not self._is_first_wait:
            self._complete()

    def _complete(self) -> None:
        """End the rebalance: those who have joined are the members of the next generation."""
        _cancel(self._timer)
        self._is_first_wait = False
        for member in [each for each in self.members.values() if each.joining is None]:
            self._forget(member)
        self._expected.clear()
        if not self.members:
            self.state = EMPTY
            return
        self.generation += 1
        self.state = COMPLETING
        self.protocol = _chosen(self.members.values())
        if self._leader not in self.members:
            self._leader = next(iter(self.members))
        listed: list[Values] = [
            {
                "memberId": each.member_id,
                "groupInstanceId": each.instance_id,
                "metadata": each.metadata(self.protocol),
            }
            for each in self.members.values()
        ]
        for member in self.members.values():
            member.assignment = b""
            answer = {
                "errorCode": ErrorCode.NONE,
                "generationId": self.generation,
                "protocolType": self.protocol_type,
                "protocolName": self.protocol,
                "leader": self._leader,
                "memberId": member.member_id,
                "members": listed if member.member_id == self._leader else [],
            }
            _answer(member.joining, answer)
            member.joining = None
            self.heard_of(member)

    async def sync(self, request: Request) -> Values:
        """Answer SyncGroup, once the leader has assigned partitions."""
        values = request.values
        # While the leader is waited for nothing of it stays in memory.
        assignments = values.pop("assignments")
        member, error = self.checked(values["memberId"], values["generationId"])
        if member is None:
            return {"errorCode": error, "assignment": b""}
        self.heard_of(member)
        if self.state == PREPARING:
            return {"errorCode": ErrorCode.REBALANCE_IN_PROGRESS, "assignment": b""}
        if self.state == COMPLETING:
            if member.member_id == self._leader:
                return self._assign(member, assignments)
            del assignments
            member.syncing = asyncio.get_running_loop().create_future()
            return await member.syncing
        return self._synced(member)

    def _assign(self, leader: ClassicMember, assignments: Iterable[Values]) -> Values:
        """Take what the leader assigns. Return the answer to it."""
        for each in assignments:
            member = self.members.get(each["memberId"])
            if member is not None:
                member.assignment = each["assignment"]
                self._hold(member)
        if self.state != COMPLETING:
            # A member had to go, and the group begins again.
            return {"errorCode": ErrorCode.REBALANCE_IN_PROGRESS, "assignment": b""}
        self.state = STABLE
        for member in self.members.values():
            _answer(member.syncing, self._synced(member))
            member.syncing = None
        return self._synced(leader)

    def _synced(self, member: ClassicMember) -> Values:
        return {
            "errorCode": ErrorCode.NONE,
            "protocolType": self.protocol_type,
            "protocolName": self.protocol,
            "assignment": member.assignment,
        }

    def heartbeat(self, values: Values) -> ErrorCode:
        """Return the answer to Heartbeat."""
        member, error = self.checked(values["memberId"], values["generationId"])
        if member is None:
            return error
        self.heard_of(member)
        is_rebalancing = self.state == PREPARING
        return ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE

    def leave(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Remove a member, by its instance id if it gives one."""
        member = self.members.get(member_id)
        if instance_id is not None:
            same = (m for m in self.members.values() if m.instance_id == instance_id)
            member = next(same, None)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._remove(member, ErrorCode.UNKNOWN_MEMBER_ID)
        return ErrorCode.NONE

    def checked(self, member_id: str, generation: int) -> tuple[ClassicMember | None, ErrorCode]:
        """Return the member of this generation; None and the error if there is none."""
        member = self.members.get(member_id)
        if member is None:
            return None, ErrorCode.UNKNOWN_MEMBER_ID
        if generation != self.generation:
            return None, ErrorCode.ILLEGAL_GENERATION
        return member, ErrorCode.NONE

    def heard_of(self, member: ClassicMember) -> None:
        """Begin the member's session timeout again."""
        _cancel(member.expiry)
        loop = asyncio.get_running_loop()
        member.expiry = loop.call_later(member.session_seconds, self._expire, member)

    def close(self) -> None:
        """Cancel all timers."""
        _cancel(self._timer)
        for member in self.members.values():
            _cancel(member.expiry)

    def _expire(self, member: ClassicMember) -> None:
        if self.members.get(member.member_id) is member and member.joining is None:
            self._remove(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def _remove(self, member: ClassicMember, error: ErrorCode) -> None:
        self._forget(member)
        _answer(member.joining, _joined(error, member.member_id))
        _answer(member.syncing, {"errorCode": error, "assignment": b""})
        if not self.members:
            _cancel(self._timer)
            self.state = EMPTY
        else:
            self._prepare()

    def _forget(self, member: ClassicMember) -> None:
        _cancel(member.expiry)
        self._held.clear(member)
        self.members.pop(member.member_id, None)
        self._expected.discard(member.member_id)


def _common(members: Iterable[ClassicMember], names: set[str]) -> set[str]:
    for member in members:
        names = names & {name for name, _ in member.protocols}
    return names


def _chosen(members: Iterable[ClassicMember]) -> str:
    """Return the protocol that most members prefer of those that all know."""
    members = list(members)
    common = _common(members, {name for name, _ in members[0].protocols})
    first = [next(name for name, _ in each.protocols if name in common) for each in members]
    return Counter(first).most_common(1)[0][0]


def _joined(error: ErrorCode, member_id: str) -> Values:
    """Return the answer to a member that cannot join."""
    return {
        "errorCode": error,
        "generationId": _NO_GENERATION,
        "protocolName": "",
        "leader": "",
        "memberId": member_id,
        "members": [],
    }


def _answer(waiting: asyncio.Future[Values] | None, values: Values) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(values)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
