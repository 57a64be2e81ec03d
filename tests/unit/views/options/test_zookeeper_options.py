"""Options of `format("zookeeper")` that are wrong, and what is made of those that are right."""

from pathlib import Path

import pytest

from kafkalog.errors import DataLossError, OptionError
from kafkalog.views.options.options import Mode
from kafkalog.views.options.zookeeper.zookeeper_options import ZookeeperView, read_zookeeper_options
from kafkalog.views.reading.zookeeper_reading import read_data_dir
from kafkalog.zookeeper.data_dir import find_data_dirs
from tests.support.zookeeper.zookeeper_files import ROOT, snapshot_bytes, write_data_dir


def test_options_have_defaults() -> None:
    options = read_zookeeper_options({"path": "/zk"})
    assert (options.paths, options.view, options.mode) == (
        ("/zk",),
        ZookeeperView.ZNODES,
        Mode.FAILFAST,
    )
    assert (options.zxid, options.time_ms, options.subtree) == (None, None, b"")


@pytest.mark.parametrize(
    ("text", "zxid"), [("0", 0), ("4294967300", 4294967300), ("0x100000004", 4294967300)]
)
def test_a_zxid_is_decimal_or_hexadecimal(text: str, zxid: int) -> None:
    assert read_zookeeper_options({"path": "/zk", "zxidAsOf": text}).zxid == zxid


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "path"),
        ({"path": "/zk", "view": "records"}, "view"),
        ({"path": "/zk", "zxidAsOf": "1f"}, "zxidAsOf"),
        ({"path": "/zk", "zxidAsOf": "-1"}, "zxidAsOf"),
        ({"path": "/zk", "timestampAsOf": "yesterday"}, "timestampAsOf"),
        ({"path": "/zk", "timestampAsOf": "1", "zxidAsOf": "1"}, "timestampAsOf"),
        ({"path": "/zk", "znode": "consumers"}, "znode"),
        ({"path": "/zk", "znode": "/consumers/"}, "znode"),
        ({"path": "/zk", "mode": "LENIENT"}, "mode"),
        ({"path": "/zk", "subscribe": "orders"}, "subscribe"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], name: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_zookeeper_options(given)
    assert raised.value.name == name


def test_what_has_no_effect_in_a_view_is_listed() -> None:
    given = {"path": "/zk", "view": "faults", "zxidAsOf": "7", "znode": "/a"}
    assert read_zookeeper_options(given).without_effect == ("znode", "zxidAsOf")


def test_a_file_that_was_purged_meanwhile_is_said_to_be(tmp_path: Path) -> None:
    write_data_dir(tmp_path, {0: snapshot_bytes([ROOT])})
    (data_dir,) = find_data_dirs([str(tmp_path)])
    (tmp_path / "version-2" / "snapshot.0").unlink()
    options = read_zookeeper_options({"path": str(tmp_path)})
    with pytest.raises(DataLossError, match=r"snapshot\.0 no longer exists"):
        list(read_data_dir(data_dir, options, ("path",)))
