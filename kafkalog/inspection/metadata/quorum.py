"""What the copies of `__cluster_metadata` say together: who votes, how many voters are left, and
which copies agree. Rules: docs/format.md F767 to F769, F1208 and F1291.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from kafkalog.coordination.metadata.image import KRAFT_VERSION
from kafkalog.errors import CorruptDataError
from kafkalog.inspection.metadata.copies import MetadataCopy, best_copy, divergence
from kafkalog.inspection.metadata.replay import MetadataReplay, image_at


class Voter(NamedTuple):
    """A controller that votes: its id and, in a dynamic quorum, its directory and listeners."""

    voter_id: int
    directory_id: str | None = None
    end_points: tuple[str, ...] = ()

    def __str__(self) -> str:
        places = f" at {', '.join(self.end_points)}" if self.end_points else ""
        directory = f", directory {self.directory_id}" if self.directory_id else ""
        return f"{self.voter_id}{places}{directory}"


# An active controller writes it twice a second, and it changes nothing.
_IDLE = "NoOpRecord"
# The columns of the rows about copies.
COPY_COLUMNS = (
    *("node_id", "is_voter", "last_epoch", "end_offset", "last_timestamp_ms", "behind"),
    *("diverges_at", "log_start_offset", "snapshots", "snapshot_end_offset", "state_version"),
    *("state_epoch", "leader_id", "voted_id", "directory_id", "cluster_id", "damage", "path"),
)


@dataclass(frozen=True)
class Quorum:
    """The copies that are at hand, all of one cluster."""

    copies: Sequence[MetadataCopy]

    @cached_property
    def best(self) -> MetadataCopy:
        """The copy that counts."""
        return best_copy(self.copies)

    @cached_property
    def replay(self) -> MetadataReplay:
        """The best copy's image at its end."""
        return image_at(self.best.log)

    @property
    def kraft_version(self) -> int:
        """0 with static voters, 1 with dynamic ones."""
        row = self.replay.image.tables["feature"].get((KRAFT_VERSION,))
        return 0 if row is None else int(row["level"])

    @cached_property
    def voters(self) -> tuple[Voter, ...]:
        """The voters of the best copy; static ones by the newest quorum-state, or else by the last
        leader in the log. None are known where neither is there."""
        rows = self.replay.image.rows("voter")
        dynamic = [
            Voter(row["voter_id"], row["voter_directory_id"], tuple(row["end_points"]))
            for row in rows
        ]
        if dynamic:
            return tuple(sorted(dynamic))
        states = [copy.quorum_state for copy in self.copies if copy.quorum_state]
        named = [state for state in states if state.voters]
        if named:
            return tuple(map(Voter, max(named, key=lambda state: state.leader_epoch).voters))
        leader = self.replay.image.tables["leader"].get(())
        return tuple(map(Voter, leader["voters"])) if leader else ()

    def is_voter(self, copy: MetadataCopy) -> bool:
        """Return whether a copy is a voter's; the directory counts in a dynamic quorum."""
        return any(
            voter.voter_id == copy.node_id and voter.directory_id in (None, copy.directory_id)
            for voter in self.voters
        )

    def forgotten_epoch(self, copy: MetadataCopy) -> MetadataCopy | None:
        """Return the copy of another voter whose quorum-state says that this one's node has led in
        an epoch which it does not know; None without one. Rule: docs/format.md F1209."""
        state = copy.quorum_state
        own = max(copy.position[0], state.leader_epoch if state is not None else -1)
        return next(
            (
                other
                for other in self.voters_here
                if (said := other.quorum_state) is not None
                and said.leader_id == copy.node_id
                and said.leader_epoch > own
            ),
            None,
        )

    @property
    def majority(self) -> int:
        """How many voters elect a leader and commit records."""
        return len(self.voters) // 2 + 1

    @cached_property
    def voters_here(self) -> list[MetadataCopy]:
        """The copies of voters."""
        return [copy for copy in self.copies if self.is_voter(copy)]

    @property
    def majority_offset(self) -> int | None:
        """The offset below which a majority of the voters has what the best copy has; None if there
        is no majority here."""
        held = sorted((self.agreed_offset(copy) for copy in self.voters_here), reverse=True)
        return held[self.majority - 1] if self.voters and len(held) >= self.majority else None

    def agreed_offset(self, copy: MetadataCopy) -> int:
        """Return the offset below which a copy has what the best one has."""
        place = self.diverges_at(copy)
        return min(copy.position[1], self.best.position[1]) if place is None else place

    def diverges_at(self, copy: MetadataCopy) -> int | None:
        """Return where a copy diverges from the best one, None if it does not."""
        return None if copy is self.best else divergence(copy.walk, self.best.walk)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row about each copy, the best first."""
        for copy in sorted(self.copies, key=lambda each: each.position, reverse=True):
            state, walk, snapshot = copy.quorum_state, copy.walk, copy.snapshot
            last_epoch, end_offset = copy.position
            yield {
                "node_id": copy.node_id,
                "is_voter": self.is_voter(copy) if self.voters else None,
                "last_epoch": last_epoch,
                "end_offset": end_offset,
                "last_timestamp_ms": None if walk.last_ms < 0 else walk.last_ms,
                "behind": self.best.position[1] - self.agreed_offset(copy),
                "diverges_at": self.diverges_at(copy),
                "log_start_offset": copy.log.start_offset,
                "snapshots": len(copy.log.snapshots),
                "snapshot_end_offset": snapshot.end_offset if snapshot else None,
                "state_version": state and state.version,
                "state_epoch": state and state.leader_epoch,
                "leader_id": state and state.leader_id,
                "voted_id": state and state.voted_id,
                "directory_id": copy.directory_id,
                "cluster_id": copy.cluster_id,
                "damage": "; ".join(map(str, copy.damages)) or None,
                "path": copy.path,
            }

    def led_by_least(self, ended: Collection[str] = ()) -> MetadataCopy:
        """Return the copy of the controller with the least metadata that can lead once all nodes
        have started: the best one of the worst majority of the voters that are here, but for those
        that end (F1209), or whose log directory is one of `ended`. Without a majority here, the
        best of all. Rule: docs/format.md F1208."""
        here = sorted(self._running(ended), key=lambda copy: copy.position)
        return here[self.majority - 1] if len(here) >= self.majority else self.best

    def led_by_majority(self, ended: Collection[str] = ()) -> bool:
        """Return whether a majority of the voters is here and starts, so that one of them leads."""
        return bool(self.voters) and len(self._running(ended)) >= self.majority

    def _running(self, ended: Collection[str]) -> list[MetadataCopy]:
        return [
            copy
            for copy in self.voters_here
            if os.path.dirname(copy.path) not in ended and self.forgotten_epoch(copy) is None
        ]


def given_up(copy: MetadataCopy, leading: MetadataCopy) -> Counter[str]:
    """Return how many records of each type a copy has and one that leads lacks, without those that
    change nothing; those that only a snapshot has are counted together."""
    found: Counter[str] = Counter()
    place = divergence(copy.walk, leading.walk)
    first = min(copy.position[1], leading.position[1]) if place is None else place
    if first >= copy.position[1]:
        return found
    if copy.log.start_offset > first:
        found["records of a snapshot"] = copy.log.start_offset - first
    with suppress(CorruptDataError):
        for entry in copy.log.entries(max(first, copy.log.start_offset)):
            if not entry.is_control and entry.name != _IDLE:
                found[str(entry.name)] += 1
    return found
