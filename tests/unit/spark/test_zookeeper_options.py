"""Options of `format("zookeeper")` that are wrong, and what is made of those that are right."""

from __future__ import annotations

import pytest

from kafkalog.errors import OptionError
from kafkalog.spark.options import Mode
from kafkalog.spark.zookeeper_options import ZookeeperView, read_zookeeper_options


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
