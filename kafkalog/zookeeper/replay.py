"""The tree as of a transaction, from a snapshot and the transactions that follow it.

Rules: docs/zookeeper.md F407, F413 and F416 to F419.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from kafkalog.errors import CorruptDataError, DataLossError
from kafkalog.storage.files.files import InputFile
from kafkalog.zookeeper.data_dir import DataDir, ZookeeperFile
from kafkalog.zookeeper.digest import DIGEST_MASK, DIGEST_VERSION
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding, finding_of
from kafkalog.zookeeper.log_reading import Logged, OnFinding, transactions_after, unreported
from kafkalog.zookeeper.snapshot_scan import SnapshotScan, scan_snapshot
from kafkalog.zookeeper.transaction_log import read_transaction_log
from kafkalog.zookeeper.tree import ChangedTree, Touched, empty_tree


@dataclass(frozen=True, slots=True)
class TreeAt:
    """A tree after the transaction `zxid`: nodes that `changed` does not name are as in the
    snapshot; without a snapshot there are no others. `in_snapshot` are the named paths that the
    snapshot has."""

    zxid: int
    snapshot: SnapshotScan | None
    changed: ChangedTree
    in_snapshot: frozenset[bytes]


def tree_at(data_dir: DataDir, until: int | None, report: OnFinding) -> TreeAt:
    """Return the tree after the last transaction, or after `until`. Problems are passed to
    `report`, which may raise; if it returns, an older snapshot replaces a damaged one, and the tree
    is the one before the first transaction that is damaged or missing.

    Raises DataLossError if there is neither a snapshot to begin with nor the first log.
    """
    touched = Touched()
    base = _base(data_dir, until, touched, report)
    for finding in base.findings:
        report(finding)
    scan = base.snapshot
    changed = _unchanged(scan, touched, data_dir)
    kept = frozenset(path for path, node in changed.nodes.items() if scan and node is not None)
    zxid = scan.zxid if scan else 0
    check = _DigestCheck(scan, report)
    # The first pass found the same problems, and the logs may have grown since.
    for logged in transactions_after(data_dir.logs, zxid, base.last_zxid, unreported):
        changed.apply(logged.transaction)
        check.compare(logged, changed.digest)
        zxid = logged.transaction.zxid
    if scan is not None and scan.end_zxid > zxid:
        detail = f"it holds changes up to zxid {scan.end_zxid:#x}, transactions end at {zxid:#x}"
        report(ZooKeeperFinding(scan.path, None, ZooKeeperFault.FUZZY, detail))
    return TreeAt(zxid, scan, changed, kept)


def oldest_tree(data_dir: DataDir, report: OnFinding) -> TreeAt | None:
    """Return the tree of the oldest sound snapshot; None if the logs contain everything before it,
    or if there is none. Damage is reported."""
    if data_dir.has_first_log:
        return None
    for snapshot in data_dir.snapshots:
        try:
            return snapshot_tree(data_dir, snapshot, report)
        except DataLossError:
            continue  # it is damaged, which is reported
    return None


def snapshot_tree(data_dir: DataDir, snapshot: ZookeeperFile, report: OnFinding) -> TreeAt:
    """Return the tree of one snapshot, with what was later than its name while it was made (F407).
    Damage is reported, and then DataLossError raised."""

    def report_damage(finding: ZooKeeperFinding) -> None:
        # Later logs are not read here.
        if finding.fault is not ZooKeeperFault.FUZZY:
            report(finding)

    alone = replace(data_dir, snapshots=(snapshot,), logs=())
    return tree_at(alone, None, report_damage)


def _unchanged(scan: SnapshotScan | None, touched: Touched, data_dir: DataDir) -> ChangedTree:
    """Return the paths that transactions will touch."""
    if scan is not None:
        return ChangedTree(scan.nodes, dict(scan.sessions), scan.ephemerals, scan.digest)
    nodes = empty_tree(with_config=_writes_digests(data_dir.logs))
    digest = sum(node.digest(path) for path, node in nodes.items()) & DIGEST_MASK
    return ChangedTree({**dict.fromkeys(touched.paths), **nodes}, {}, {}, digest)


class _Base(NamedTuple):
    """The start of a tree, a snapshot or nothing; the last transaction that can be carried out on
    it, and the findings of those."""

    snapshot: SnapshotScan | None
    last_zxid: int
    findings: list[ZooKeeperFinding]


def _base(data_dir: DataDir, until: int | None, touched: Touched, report: OnFinding) -> _Base:
    """Return the newest snapshot that is sound and was complete by `until`; fill `touched` with the
    paths that later transactions need."""
    unsure: _Base | None = None
    for snapshot in reversed(data_dir.snapshots):
        if until is not None and snapshot.zxid > until:
            continue
        findings = _touch(data_dir.logs, snapshot.zxid, until, touched)
        try:
            scan = scan_snapshot(snapshot.path, snapshot.zxid, touched)
        except CorruptDataError as error:
            report(finding_of(error, snapshot.path))
            continue
        # Snapshots are made one after the other: that an older one was finished is sure.
        if until is None or unsure is not None or _is_finished(scan, until):
            return _Base(scan, touched.last_zxid, findings)
        unsure = _Base(scan, touched.last_zxid, findings)
    if unsure is not None and not data_dir.has_first_log:
        return unsure
    _require_first_log(data_dir, until)
    findings = _touch(data_dir.logs, 0, until, touched)
    findings.append(
        ZooKeeperFinding(
            data_dir.path, None, ZooKeeperFault.NO_SNAPSHOT, "built from the first log on"
        )
    )
    return _Base(None, touched.last_zxid, findings)


def _is_finished(scan: SnapshotScan, until: int) -> bool:
    return scan.is_end_known and scan.end_zxid <= until


def _touch(
    logs: tuple[ZookeeperFile, ...], after: int, until: int | None, touched: Touched
) -> list[ZooKeeperFinding]:
    findings: list[ZooKeeperFinding] = []
    for logged in transactions_after(logs, after, until, findings.append):
        touched.add(logged.transaction)
    return findings


def _require_first_log(data_dir: DataDir, until: int | None) -> None:
    if data_dir.has_first_log:
        return
    first = min((file.zxid for file in data_dir.snapshots), default=None)
    reaches = "" if first is None else f"; the oldest snapshot is of zxid {first:#x}"
    for_zxid = "" if until is None else f" for zxid {until:#x}"
    raise DataLossError(
        f"{data_dir.path} has no sound snapshot{for_zxid}, and its logs do not begin with the "
        f"first transaction{reaches}: view faults lists the damage"
    )


def _writes_digests(logs: tuple[ZookeeperFile, ...]) -> bool:
    """Return whether the first transaction is of a release that writes digests, and so has the node
    of its configuration from the beginning."""
    with InputFile(logs[0].path) as file:
        first = next(iter(read_transaction_log(file)), None)
    return not isinstance(first, ZooKeeperFinding | None) and first.transaction.digest is not None


class _DigestCheck:
    """Compares the digest of the tree with what the server wrote after each transaction, from where
    the snapshot holds nothing later; reports the first difference. If the snapshot does not say how
    fuzzy it is, nothing is compared: it may lack what was deleted meanwhile."""

    def __init__(self, base: SnapshotScan | None, report: OnFinding) -> None:
        self._report = report
        self._is_over = base is not None and not base.is_end_known
        self._from = base.end_zxid if base else 0
        stored = base.stored_digest if base else None
        self._stored = stored if stored and stored.version == DIGEST_VERSION else None

    def compare(self, logged: Logged, digest: int) -> None:
        """Compare after a transaction has been carried out."""
        transaction = logged.transaction
        if self._is_over or transaction.zxid < self._from:
            return
        written = []
        if self._stored is not None and self._stored.zxid == transaction.zxid:
            written.append(self._stored.digest)
        if transaction.digest is not None and transaction.digest.version == DIGEST_VERSION:
            written.append(transaction.digest.tree_digest)
        for expected in written:
            if expected & DIGEST_MASK != digest:
                self._is_over = True
                detail = f"after zxid {transaction.zxid:#x} the tree's digest is {digest:#x}, "
                detail += f"{expected & DIGEST_MASK:#x} was written"
                self._report(
                    ZooKeeperFinding(logged.file, logged.position, ZooKeeperFault.DIGEST, detail)
                )
                return
