"""What can be wrong with ZooKeeper's files. Rules: docs/zookeeper.md F402 to F419."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kafkalog.errors import CorruptDataError


class ZooKeeperFault(Enum):
    """One reason why a file, or what files say together, is not as ZooKeeper leaves it."""

    TRUNCATED = "truncated"
    MAGIC = "magic"
    VERSION = "version"
    MALFORMED = "malformed"
    COMPRESSION = "compression"
    CHECKSUM = "checksum"
    SEAL = "seal"
    DIGEST = "digest"
    GAP = "gap"
    ORDER = "order"
    FUZZY = "fuzzy"
    NO_SNAPSHOT = "no_snapshot"
    NOT_LOGGED = "not_logged"

    @property
    def is_damage(self) -> bool:
        """Whether the result can be wrong because of it: not for a file that was being written when
        it was copied, nor if no snapshot is needed, nor if a snapshot replaces transactions."""
        return self not in (
            ZooKeeperFault.TRUNCATED,
            ZooKeeperFault.NO_SNAPSHOT,
            ZooKeeperFault.NOT_LOGGED,
        )


@dataclass(frozen=True, slots=True)
class ZooKeeperFinding:
    """A problem and its place: `position` is in the decompressed file, null if the file lacks
    something; `file` is a directory if files are missing."""

    file: str
    position: int | None
    fault: ZooKeeperFault
    detail: str

    def error(self, advice: str) -> CorruptDataError:
        """Return the finding as an error to raise."""
        return CorruptDataError(
            self.fault.value,
            self.detail,
            position=self.position or 0,
            path=self.file,
            advice=advice,
        )


def corrupt(fault: ZooKeeperFault, detail: str, position: int) -> CorruptDataError:
    """Return an error for bytes at a position in a file that the caller knows."""
    return CorruptDataError(fault.value, detail, position=position)


def finding_of(error: CorruptDataError, file: str) -> ZooKeeperFinding:
    """Return the finding in an error that `corrupt` made."""
    return ZooKeeperFinding(file, error.position, ZooKeeperFault(error.fault), error.detail)
