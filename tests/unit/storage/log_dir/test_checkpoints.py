"""Checkpoints and meta.properties, and what a log directory makes of them. F80 to F83."""

import logging
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint, write_offset_checkpoint
from kafkalog.format.side_files.properties import read_properties
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import LogDir
from tests.support.logs.log_dirs import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    add_meta_properties,
    add_partition,
    checkpoint_text,
)


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("", {}),
        ("0\n0\n", {}),
        ("0\n1\norders 0 23\n", {("orders", 0): 23}),
        ("0\n1\norders 0 23", {("orders", 0): 23}),
        (
            "0\n3\nweb-shop.v2 11 9223372036854775807\n__consumer_offsets 49 0\nweb-shop.v2 2 7\n",
            {("web-shop.v2", 11): 2**63 - 1, ("__consumer_offsets", 49): 0, ("web-shop.v2", 2): 7},
        ),
        ("0\n1\norders\t0   23\n", {("orders", 0): 23}),
        ("0\r\n1\r\norders 0 23\r\n", {("orders", 0): 23}),
    ],
)
def test_a_checkpoint_is_a_version_a_count_and_offsets(
    text: str, offsets: dict[tuple[str, int], int]
) -> None:
    # F80.
    assert read_offset_checkpoint(text) == offsets


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1\n1\norders 0 23\n", 1),
        ("\n", 1),
        ("orders 0 23\n", 1),
        ("\0\0\0\0", 1),
        ("0\nmany\norders 0 23\n", 2),
        ("0\n2\norders 0 23\n", 2),
        ("0\n0\norders 0 23\n", 2),
        ("0\n1\n", 2),
        ("0\n1\norders 0\n", 3),
        ("0\n2\norders 0 23\norders one 23\n", 4),
        ("0\n1\norders 0 23.5\n", 3),
        ("0\n1\n\ufffd\ufffd\n", 3),
    ],
)
def test_a_checkpoint_of_another_form_is_an_error_that_tells_the_line(text: str, line: int) -> None:
    # F80.
    with pytest.raises(CorruptDataError) as caught:
        read_offset_checkpoint(text)
    assert (caught.value.fault, caught.value.position) == ("checkpoint", line)


def test_an_offset_beyond_64_bits_is_an_error() -> None:
    # F80.
    with pytest.raises(CorruptDataError):
        read_offset_checkpoint(f"0\n1\norders 0 {2**63}\n")


def test_a_line_of_four_words_is_an_error() -> None:
    # F80.
    with pytest.raises(CorruptDataError):
        read_offset_checkpoint("0\n1\norders 0 23 24\n")


def test_a_checkpoint_is_written_as_kafka_writes_it() -> None:
    # F80.
    offsets = {("web-shop.v2", 11): 2**40, ("__consumer_offsets", 49): 0}
    text = "0\n2\nweb-shop.v2 11 1099511627776\n__consumer_offsets 49 0\n"
    assert write_offset_checkpoint(offsets) == text


@pytest.mark.parametrize("offsets", [{}, {("a", 0): 1, ("a", 1): 0, ("a-b.c", 10): 2**63 - 1}])
def test_a_checkpoint_is_read_as_it_was_written(offsets: dict[tuple[str, int], int]) -> None:
    # F80.
    assert read_offset_checkpoint(write_offset_checkpoint(offsets)) == offsets


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("#Tue Mar 05 10:00:00 UTC 2024\n", {}),
        (
            "#\n#Tue Mar 05 10:00:00 UTC 2024\nversion=0\nbroker.id=7\ncluster.id=Yq3xT-1_a\n",
            {"version": "0", "broker.id": "7", "cluster.id": "Yq3xT-1_a"},
        ),
        (
            "directory.id=abc\r\n node.id = 3 \r\n!node.id=4\r\n",
            {"directory.id": "abc", "node.id": "3"},
        ),
        ("cluster.id=a=b\n", {"cluster.id": "a=b"}),
        ("alone\n", {}),
        ("as in Java\n", {"as": "in Java"}),
    ],
)
def test_meta_properties_are_keys_and_values(text: str, properties: dict[str, str]) -> None:
    # F82.
    assert read_properties(text).values == properties


def log_dir_of(path: Path, *, strict: bool = True) -> LogDir:
    (log,) = find_partitions([str(path)], strict=strict)
    return log.log_dir


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    add_partition(tmp_path / "data", "orders-0", 0)
    return tmp_path / "data"


def test_a_log_dir_without_files_of_its_own_says_nothing(log_dir: Path) -> None:
    assert log_dir_of(log_dir) == LogDir(str(log_dir))


def test_a_log_dir_tells_what_its_files_say(log_dir: Path) -> None:
    # F81 to F83.
    add_meta_properties(log_dir, cluster_id="Yq3xT-1_a", node_id=3)
    (log_dir / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    (log_dir / LOG_STARTS).write_text(checkpoint_text({("orders", 0): 5}))
    (log_dir / HIGH_WATERMARKS).write_text(checkpoint_text({("orders", 0): 90, ("a-b.c", 1): 0}))
    (log_dir / CLEANED).write_text(checkpoint_text({("orders", 0): 50}))
    (log_dir / "recovery-point-offset-checkpoint").write_text(checkpoint_text({("orders", 0): 70}))
    assert log_dir_of(log_dir) == LogDir(
        path=str(log_dir),
        cluster_id="Yq3xT-1_a",
        broker_id=3,
        is_clean_shutdown=True,
        log_starts={("orders", 0): 5},
        high_watermarks={("orders", 0): 90, ("a-b.c", 1): 0},
        recovery_points={("orders", 0): 70},
        cleaner_checkpoints={("orders", 0): 50},
        has_cleaner_checkpoint=True,
    )


@pytest.mark.parametrize(
    ("properties", "cluster_id", "broker_id"),
    [
        ("version=0\nbroker.id=7\ncluster.id=zk\n", "zk", 7),
        ("version=1\nnode.id=8\ncluster.id=kraft\ndirectory.id=d\n", "kraft", 8),
        ("version=1\nnode.id=8\nbroker.id=7\n", None, 8),
        ("version=0\nbroker.id=0\n", None, 0),
        ("broker.id=-1\n", None, -1),
        ("broker.id=seven\n", None, None),
        ("broker.id=--5\n", None, None),
        ("broker.id=²\n", None, None),
        ("", None, None),
    ],
)
def test_a_broker_is_a_node_in_kraft(
    properties: str, cluster_id: str | None, broker_id: int | None, log_dir: Path
) -> None:
    # F82.
    (log_dir / "meta.properties").write_text(properties)
    assert log_dir_of(log_dir) == LogDir(str(log_dir), cluster_id, broker_id)


def test_an_empty_file_is_enough_for_a_clean_shutdown(log_dir: Path) -> None:
    # F83: older brokers leave it empty.
    (log_dir / ".kafka_cleanshutdown").touch()
    assert log_dir_of(log_dir) == LogDir(str(log_dir), is_clean_shutdown=True)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", [LOG_STARTS, HIGH_WATERMARKS, CLEANED])
def test_an_empty_checkpoint_file_is_not_an_error(name: str, strict: bool, log_dir: Path) -> None:
    # F80.
    (log_dir / name).touch()
    expected = LogDir(str(log_dir), has_cleaner_checkpoint=name == CLEANED)
    assert log_dir_of(log_dir, strict=strict) == expected


BAD_CHECKPOINTS = {
    "version": ("1\n0\n", "line 1"),
    "count": ("0\n2\norders 0 5\n", "line 2"),
    "garbage": ("0\n1\n\x00\xff\n", "line 3"),
}


@pytest.mark.parametrize("bad", BAD_CHECKPOINTS)
@pytest.mark.parametrize("name", [LOG_STARTS, HIGH_WATERMARKS, CLEANED])
def test_a_bad_checkpoint_is_an_error_that_tells_file_and_line(
    name: str, bad: str, log_dir: Path
) -> None:
    # F80, F81.
    text, line = BAD_CHECKPOINTS[bad]
    (log_dir / name).write_text(text, encoding="latin-1")
    with pytest.raises(LogDirError) as caught:
        find_partitions([str(log_dir)], strict=True)
    assert str(caught.value).startswith(f"{log_dir / name}: {line}: ")
    assert "PERMISSIVE" in str(caught.value)


@pytest.mark.parametrize("bad", BAD_CHECKPOINTS)
@pytest.mark.parametrize("name", [LOG_STARTS, HIGH_WATERMARKS, CLEANED])
def test_a_bad_checkpoint_is_left_aside_and_logged_where_that_is_asked(
    name: str, bad: str, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F80, F81.
    text, line = BAD_CHECKPOINTS[bad]
    (log_dir / name).write_text(text, encoding="latin-1")
    assert log_dir_of(log_dir, strict=False) == LogDir(str(log_dir))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"{log_dir / name}: {line}: ")


def test_one_bad_checkpoint_leaves_the_others_as_they_are(log_dir: Path) -> None:
    # F81.
    (log_dir / LOG_STARTS).write_text("garbage")
    (log_dir / HIGH_WATERMARKS).write_text(checkpoint_text({("orders", 0): 90}))
    expected = LogDir(str(log_dir), high_watermarks={("orders", 0): 90})
    assert log_dir_of(log_dir, strict=False) == expected


def test_the_files_of_a_log_dir_hold_for_a_partition_given_by_path(log_dir: Path) -> None:
    # F81, F82.
    add_meta_properties(log_dir, cluster_id="c", node_id=2)
    (log_dir / LOG_STARTS).write_text(checkpoint_text({("orders", 0): 5}))
    assert log_dir_of(log_dir / "orders-0") == LogDir(
        str(log_dir), "c", 2, log_starts={("orders", 0): 5}
    )


@pytest.mark.parametrize("text", ["x" * 10**7, "0\n1\n" + "x" * 10**7, "0\n1\n" + "\0" * 10**7])
def test_an_error_shows_the_beginning_of_a_long_line(text: str) -> None:
    with pytest.raises(CorruptDataError) as caught:
        read_offset_checkpoint(text)
    assert len(str(caught.value)) < 500


def test_a_checkpoint_has_at_most_a_million_entries() -> None:
    # F80. As values 64 MiB of them took gigabytes.
    most = "0\n1000000\n" + "".join(f"t {number} 0\n" for number in range(10**6))
    assert len(read_offset_checkpoint(most)) == 10**6
    with pytest.raises(CorruptDataError, match="more than 1,000,000 entries"):
        read_offset_checkpoint(most + "t 1000000 0")


def test_a_checkpoint_that_many_logs_share_is_parsed_once() -> None:
    # F80: it names all partitions of its log directory, and logs are found one by one.
    text = checkpoint_text({("orders", 0): 23, ("orders", 1): 4})
    assert read_offset_checkpoint(text) is read_offset_checkpoint("".join([text[:5], text[5:]]))
