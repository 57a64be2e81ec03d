"""The end of every log of real brokers, sound, killed or damaged: found by headers and the last
checksum, it is the one that all checksums tell. Rule: F520."""

import pytest

from kafkalog.inspection.logs.log_offsets import log_end_offset
from kafkalog.inspection.logs.log_tails import LogTails
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from tests.support.repository import Unpack

SETS = ("kafka44", "kafka39zk", "kafka010", "kafka08", "tiered43", "unclean")


@pytest.mark.parametrize("name", SETS)
def test_tails_end_where_logs_do(name: str, unpacked: Unpack) -> None:
    directories = sorted({path.parent for path in unpacked(f"{name}.logs").rglob("*.log")})
    logs = [log for path in directories for log in find_partitions([str(path)], strict=False)]
    read = [log for log in logs if log.is_live and not is_oldest_layout(log)]
    tails = LogTails()
    ends = {log.path: log_end_offset(log) for log in read}
    for _ in range(2):
        assert {log.path: tails.end(log).offset for log in read} == ends
    assert len(ends) > 3
