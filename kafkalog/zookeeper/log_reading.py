"""The transactions that follow a zxid, across the files of a data directory.

Rules: docs/zookeeper.md F411, F412 and F416.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.data_dir import DataDir, ZookeeperFile
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.transaction_log import LogEntry, read_transaction_log
from kafkalog.zookeeper.transactions import Transaction

_COUNTER_BITS = 32
_COUNTER = (1 << _COUNTER_BITS) - 1

OnFinding = Callable[[ZooKeeperFinding], None]


def unreported(finding: ZooKeeperFinding) -> None:
    """Do nothing with a finding: it is reported elsewhere."""


def once(report: OnFinding) -> OnFinding:
    """Reports a finding the first time only, although the same files are read again."""
    known: set[ZooKeeperFinding] = set()

    def report_new(finding: ZooKeeperFinding) -> None:
        if finding not in known:
            known.add(finding)
            report(finding)

    return report_new


class Logged(NamedTuple):
    """A transaction and its place."""

    file: str
    position: int
    transaction: Transaction


def follows(zxid: int, last: int) -> bool:
    """Return whether nothing is missing between two transactions: each is one later, or is the
    first of a later leader."""
    if zxid == last + 1:
        return True
    return zxid >> _COUNTER_BITS > last >> _COUNTER_BITS and zxid & _COUNTER == 1


def logs_from(logs: Sequence[ZookeeperFile], zxid: int) -> list[ZookeeperFile]:
    """Return the files that can hold transactions from `zxid` on."""
    first = max((log.zxid for log in logs if log.zxid <= zxid), default=0)
    return [log for log in logs if log.zxid >= first]


def all_entries(data_dir: DataDir, report: OnFinding) -> Iterator[Logged]:
    """Yield every sound entry of all logs, in their order. Damage, repeated entries and gaps are
    reported and skipped."""
    last: int | None = None
    for log in data_dir.logs:
        with InputFile(log.path) as file:
            for entry in read_transaction_log(file):
                if isinstance(entry, ZooKeeperFinding):
                    report(entry)
                    continue
                zxid = entry.transaction.zxid
                if last is not None and zxid <= last:
                    report(_order(log.path, entry, last))
                    continue
                if last is not None and not follows(zxid, last):
                    report(_missing(data_dir, log.path, entry, last))
                last = zxid
                yield Logged(log.path, entry.position, entry.transaction)


def transactions_after(
    logs: Sequence[ZookeeperFile], zxid: int, until: int | None, report: OnFinding
) -> Iterator[Logged]:
    """Yield the transactions later than `zxid`, up to `until`, each following the one before it;
    end at the first damage or gap, which is reported. Damage between two that follow each other
    loses nothing."""
    last, waiting = zxid, list[ZooKeeperFinding]()
    for log in logs_from(logs, zxid + 1):
        with InputFile(log.path) as file:
            for entry in read_transaction_log(file):
                if isinstance(entry, ZooKeeperFinding):
                    waiting.append(entry)
                    continue
                found = entry.transaction.zxid
                if found <= zxid:
                    waiting.clear()
                    continue
                if until is not None and found > until:
                    if last < until and not follows(found, last):
                        gap = [] if _has_damage(waiting) else [_gap(log.path, entry, last)]
                        _reported([*waiting, *gap], report)
                    return
                if not waiting and found <= last:
                    report(_order(log.path, entry, last))
                    continue
                if found == last + 1:
                    waiting = [finding for finding in waiting if not finding.fault.is_damage]
                elif not _has_damage(waiting) and not follows(found, last):
                    waiting.append(_gap(log.path, entry, last))
                if _has_damage(waiting):
                    break
                last = found
                _reported(waiting, report)
                yield Logged(log.path, entry.position, entry.transaction)
        if _reported(waiting, report):
            return


def _reported(findings: list[ZooKeeperFinding], report: OnFinding) -> bool:
    """Report and forget findings; whether there was damage among them."""
    has_damage = _has_damage(findings)
    for finding in findings:
        report(finding)
    findings.clear()
    return has_damage


def _has_damage(findings: list[ZooKeeperFinding]) -> bool:
    return any(finding.fault.is_damage for finding in findings)


def _order(path: str, entry: LogEntry, last: int) -> ZooKeeperFinding:
    detail = f"zxid {entry.transaction.zxid:#x} comes after {last:#x}"
    return ZooKeeperFinding(path, entry.position, ZooKeeperFault.ORDER, detail)


def _missing(data_dir: DataDir, path: str, entry: LogEntry, last: int) -> ZooKeeperFinding:
    """Return the finding for a gap, or None: a server that lagged too far copied its leader's
    snapshot."""
    zxid = entry.transaction.zxid
    covering = (file for file in data_dir.snapshots if last < file.zxid < zxid)
    taken_over = next((file for file in covering if follows(zxid, file.zxid)), None)
    if taken_over is None:
        return _gap(path, entry, last)
    detail = f"those between zxid {last:#x} and {zxid:#x} came with {taken_over.path}"
    return ZooKeeperFinding(path, entry.position, ZooKeeperFault.NOT_LOGGED, detail)


def _gap(path: str, entry: LogEntry, last: int) -> ZooKeeperFinding:
    detail = f"the transactions between zxid {last:#x} and {entry.transaction.zxid:#x} are missing"
    return ZooKeeperFinding(path, entry.position, ZooKeeperFault.GAP, detail)
