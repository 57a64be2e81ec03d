"""Which files of a log directory a broker's user cannot use, by owner and mode, and by its file
system.

Rules: docs/format.md F965 and F1193.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from kafkalog.errors import OptionError
from kafkalog.inspection.start.node_directories import METADATA_DIR, NodeDirectory
from kafkalog.inspection.start.reasons import Reason
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN, META_PROPERTIES
from kafkalog.storage.names import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS, REPLICATION_OFFSETS

_READ, _WRITE, _SEARCH = 4, 2, 1
_ALL = _READ | _WRITE | _SEARCH
_ROOT = 0
# Of other files at the top of a log directory a broker reads none, or does without.
_READ_AT_TOP = {
    META_PROPERTIES: _READ,
    RECOVERY_POINTS: _READ,
    LOG_STARTS: _READ,
    REPLICATION_OFFSETS: _READ,
    CLEANER_OFFSETS: _READ,
    ".lock": _READ | _WRITE,
}


@dataclass(frozen=True, slots=True)
class BrokerUser:
    """The user that runs the broker, and the groups it is in."""

    uid: int
    gids: frozenset[int]
    name: str

    @classmethod
    def named(cls, text: str) -> BrokerUser:
        """Return the user of a name or a number. Raises OptionError for an unknown name."""
        import pwd

        try:
            entry = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
        except KeyError:
            if text.isdecimal():
                return cls(int(text), frozenset((int(text),)), text)
            raise OptionError("--user", text, "a user of this machine, or a number") from None
        groups = frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))
        return cls(entry.pw_uid, groups, entry.pw_name)

    def may(self, status: os.stat_result, wanted: int) -> bool:
        """Return whether owner and mode of a file allow the user all bits of `wanted`."""
        if self.uid == _ROOT:
            return True
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid == self.uid:
            mode >>= 6
        elif status.st_gid in self.gids:
            mode >>= 3
        return mode & wanted == wanted


def most_frequent_owner(paths: Sequence[str]) -> BrokerUser | None:
    """Return the owner of most entries in log directories; None without any."""
    owners = Counter(
        entry.stat(follow_symlinks=False).st_uid for path in paths for entry in _scanned(path)
    )
    return BrokerUser.named(str(owners.most_common(1)[0][0])) if owners else None


def refused_files(directory: NodeDirectory, user: BrokerUser) -> Iterator[Reason]:
    """Yield the files and directories that the user cannot use as a broker does when it starts:
    each takes the whole log directory offline."""
    path = directory.path
    if is_remote(path) or not directory.is_there:
        return
    refused = _file_system_reason(directory, user)
    if refused is not None:
        yield refused
        return
    if user.uid == _ROOT:
        return
    if not user.may(os.stat(path), _ALL):
        yield _reason(path, os.stat(path), path, user)
        return
    for name, wanted in _READ_AT_TOP.items():
        yield from _refused_file(os.path.join(path, name), wanted, directory, user)
    for entry, _ in directory.partitions():
        yield from _refused_in(entry.path, directory, user)
    if directory.has_metadata:
        # Without its copy of the metadata the process ends before a directory can go offline.
        for each in _refused_in(os.path.join(path, METADATA_DIR), directory, user):
            yield replace(each, ends_process=True)


def _file_system_reason(directory: NodeDirectory, user: BrokerUser) -> Reason | None:
    """Return why the file system takes no write. After a clean stop the file that says so makes
    room for the leader epochs, and recovery of the metadata for more."""
    path = directory.path
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        line = f"mount -o remount,rw {quote(path)}"
        return Reason(path, "its file system is mounted read-only", line, path, False)
    full = full_notice(directory, user)
    stopped_cleanly = any(entry.name == CLEAN_SHUTDOWN for entry in directory.files)
    return None if stopped_cleanly or directory.has_metadata else full


def full_notice(directory: NodeDirectory, user: BrokerUser) -> Reason | None:
    """Return that the file system is full, None if it is not."""
    path = directory.path
    if is_remote(path) or not directory.is_there:
        return None
    status = os.statvfs(path)
    is_root = user.uid == _ROOT
    blocks = status.f_bfree if is_root else status.f_bavail
    files = status.f_ffree if is_root else status.f_favail
    if (blocks or not status.f_blocks) and (files or not status.f_files):
        return None
    what = "inode" if blocks else "block"
    detail = (
        f"its file system is full, no {what} is free for user {user.name}: the directory goes "
        "offline at the first write that finds no room"
    )
    line = f"df {quote(path)}; kafkalog free {quote(path)} shows what may be deleted"
    return Reason(path, detail, line, path, False)


def _refused_in(folder: str, directory: NodeDirectory, user: BrokerUser) -> Iterator[Reason]:
    """Yield what the user cannot use of a partition: a broker reads every file, and writes to logs
    and to the indexes of the last segment."""
    status = os.stat(folder)
    if not user.may(status, _ALL):
        yield _reason(folder, status, directory.path, user)
        return
    files = [entry for entry in _scanned(folder) if entry.is_file()]
    logs = [entry.name for entry in files if entry.name.endswith(".log")]
    last = max(logs, default="").removesuffix(".log")
    written = {f"{last}.index", f"{last}.timeindex", *logs}
    for entry in files:
        wanted = _READ | _WRITE if entry.name in written else _READ
        yield from _refused_file(entry.path, wanted, directory, user)


def _refused_file(
    path: str, wanted: int, directory: NodeDirectory, user: BrokerUser
) -> Iterator[Reason]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    if not user.may(status, wanted):
        yield _reason(path, status, directory.path, user)


def _reason(path: str, status: os.stat_result, log_dir: str, user: BrokerUser) -> Reason:
    mode = stat.filemode(status.st_mode)
    detail = f"user {user.name} may not use it: it belongs to uid {status.st_uid}, {mode}"
    own = f"chmod u+rwX {quote(path)}"
    line = own if status.st_uid == user.uid else f"chown {user.name} {quote(path)} && {own}"
    return Reason(path, detail, line, log_dir, False)


def _scanned(path: str) -> list[os.DirEntry[str]]:
    if is_remote(path):
        return []
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
