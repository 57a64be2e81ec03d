"""What a task does about what is wrong with ZooKeeper's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkalog.errors import DataLossError
from kafkalog.log_lines import logger
from kafkalog.views.options.options import Mode
from kafkalog.views.reading.segment_damage import PassedDamage
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.faults import ZooKeeperFault, ZooKeeperFinding
from kafkalog.zookeeper.log_reading import OnFinding

_logger = logger(__name__)


@contextmanager
def reported_damage(data_dir: DataDir, mode: Mode, advice: str) -> Iterator[OnFinding]:
    """What to report findings to while the files are read: damage is an error, with `advice`, or
    is passed over and logged, as `mode` says.

    Raises CorruptDataError for damage, DataLossError for a file that no longer exists.
    """
    passed = PassedDamage(mode)

    def report(finding: ZooKeeperFinding) -> None:
        if finding.fault is ZooKeeperFault.NOT_LOGGED:
            _logger.warning("%s: transactions are not logged: %s", finding.file, finding.detail)
        if not finding.fault.is_damage:
            return
        if mode is Mode.FAILFAST:
            raise finding.error(advice)
        passed.add(f"{finding.file}: {finding.fault.value}: {finding.detail}")

    try:
        yield report
    except FileNotFoundError as error:
        raise DataLossError(
            f"{error.filename} no longer exists: the server, or a cleanup after it, has "
            "purged it since the read was planned; read again"
        ) from None
    passed.summarise(f"{data_dir.path}: {passed.count} damaged places in all")
