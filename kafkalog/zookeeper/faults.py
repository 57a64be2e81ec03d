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
        """Whether what was read can be wrong for it: not by a file that was being written when it
        was copied, nor where no snapshot is needed, nor where one stands for transactions."""
        return self not in (
            ZooKeeperFault.TRUNCATED,
            ZooKeeperFault.NO_SNAPSHOT,
            ZooKeeperFault.NOT_LOGGED,
        )


@dataclass(frozen=True, slots=True)
class ZooKeeperFinding:
    """Something wrong, and where: `position` is in the file as it is without compression, null for
    what a file does not have; `file` is a directory where files are missing."""

    file: str
    position: int | None
    fault: ZooKeeperFault
    detail: str

    def error(self, advice: str) -> CorruptDataError:
        """The same as an error to raise."""
        return CorruptDataError(
            self.fault.value,
            self.detail,
            position=self.position or 0,
            path=self.file,
            advice=advice,
        )


def corrupt(fault: ZooKeeperFault, detail: str, position: int) -> CorruptDataError:
    """An error for bytes at a position, of which the caller knows the file."""
    return CorruptDataError(fault.value, detail, position=position)


def finding_of(error: CorruptDataError, file: str) -> ZooKeeperFinding:
    """The finding in an error that `corrupt` made."""
    return ZooKeeperFinding(file, error.position, ZooKeeperFault(error.fault), error.detail)
