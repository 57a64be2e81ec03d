"""Which logs salvage takes. Rule: F180."""

from pathlib import Path

import pytest

from kafkalog.errors import UnsupportedFormatError
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.writing.salvaged_log_dir import salvageable
from tests.support.logs.log_dirs import add_meta_properties


def test_the_oldest_layout_is_refused_rather_than_lost_as_garbage(tmp_path: Path) -> None:
    # F154: its messages are not batches.
    add_meta_properties(tmp_path)
    (tmp_path / "orders_0").mkdir()
    (tmp_path / "orders_0" / "00000000000.kafka").write_bytes(bytes(14))
    with pytest.raises(UnsupportedFormatError, match=r"Kafka 0\.7"):
        salvageable(find_partitions([str(tmp_path)]))
