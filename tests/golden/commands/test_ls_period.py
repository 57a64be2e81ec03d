"""`kafkalog ls` about a period: what came, how fast, from whom. Rules: F1161 and F1162."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.testing import LogDirectory, ProducerRecord

SECOND = 1_700_000_000_000


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["ls", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    code, out, error = run(*arguments, "--format", "json")
    assert code == 0, error
    return [json.loads(line) for line in out.splitlines()]


def test_all_times_together_have_what_ls_counts(unpacked: Callable[[str], Path]) -> None:
    # F1161: the same records of a real broker, counted by the segments' headers.
    log_dir = next(unpacked("kafka44.logs").rglob("meta.properties")).parent
    counted = {row["topic"]: row["records"] for row in rows(log_dir) if row["records"]}
    found: Counter[str] = Counter()
    for row in rows(log_dir, "--by", "producer"):
        found[row["topic"]] += row["records"]
    counted.pop("__cluster_metadata")
    assert {topic: count for topic, count in found.items() if count} == counted


def test_a_real_producer_has_the_transactional_id_of_its_coordinator(
    unpacked: Callable[[str], Path],
) -> None:
    # F1162: docs/questions.md shows the same producer, by `kafkalog groups --why`.
    log_dir = next(unpacked("kafka44.logs").rglob("meta.properties")).parent
    found = rows(log_dir, "--by", "producer", "--topic", "__consumer_offsets")
    ids = {row["producer_id"]: row["transactional_id"] for row in found}
    assert ids[1032] == "shop.tid-pendoff"


def test_a_producer_whose_transactions_have_epochs_of_their_own_is_one_row(
    unpacked: Callable[[str], Path],
) -> None:
    # F1162: producers of Kafka 4.4 that have committed many transactions.
    log_dir = next(unpacked("kafka44.logs").rglob("meta.properties")).parent
    found = rows(log_dir, "--by", "producer", "--topic", "shop.tx")
    ids = [row["producer_id"] for row in found]
    assert len(set(ids)) == len(ids)
    (after,) = [row for row in found if row["transactional_id"] == "shop.tid-after"]
    assert after["producer_epoch"] == 6


ALWAYS = ("--since", "1970-01-01T00:00:00Z")


@pytest.fixture
def log_dir(tmp_path: Path) -> LogDirectory:
    made = LogDirectory(tmp_path / "logs")
    orders = made.topic("orders")
    orders.records([ProducerRecord("a", "1", timestamp_ms=SECOND)])
    orders.records([ProducerRecord("b", "2", timestamp_ms=SECOND + 5000)])
    orders.records([ProducerRecord("c", "3" * 200, timestamp_ms=SECOND + 5999)])
    orders.records([ProducerRecord("d", "4", timestamp_ms=SECOND + 6000)])
    return made


def test_a_batch_counts_in_the_period_of_its_largest_timestamp(log_dir: LogDirectory) -> None:
    # F1161
    (row,) = rows(log_dir.write(), "--from-time", SECOND + 1, "--until-time", SECOND + 6000)
    assert (row["records"], row["batches"], row["clock"]) == (2, 2, "producer")
    assert (row["first_timestamp_ms"], row["last_timestamp_ms"]) == (SECOND + 5000, SECOND + 5999)
    assert (row["peak_bytes_per_second"], row["peak_ms"]) == (row["bytes"], SECOND + 5000)
    assert rows(log_dir.write(), "--from-time", SECOND + 7000) == []


def test_batches_that_do_not_count_are_named(
    log_dir: LogDirectory, unpacked: Callable[[str], Path]
) -> None:
    # F1161: topic shop.raw has batches without a time, as its client sent them.
    real = next(unpacked("kafka44.logs").rglob("meta.properties")).parent
    _, out, _ = run(real, "--topic", "shop.raw", "--from-time", "2026-01-01T00:00:00Z")
    assert "not counted: 3 batches without a time in 1 topic: shop.raw" in out
    assert "2 batches counted with times ahead of the clock in 1 topic: shop.raw" in out
    _, out, _ = run(real, "--topic", "shop.raw", *ALWAYS, "--until-time", "now")
    assert "ahead of the clock" not in out
    file = Path(log_dir.write()) / "orders-0" / f"{0:020d}.log"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # a byte of the last batch
    file.write_bytes(content)
    _, out, _ = run(file.parent.parent, *ALWAYS)
    assert "not counted: 1 batch damaged in 1 topic: orders: kafkalog check" in out


def test_markers_are_neither_records_nor_batches(log_dir: LogDirectory) -> None:
    # F1161
    shop = log_dir.transactional_producer("shop")
    orders = log_dir.topic("paid")
    shop.records(orders, [("a", "1"), ("b", "2"), ("c", "3")])
    shop.commit()
    found = rows(log_dir.write(), "--by", "producer", "--topic", "paid")
    (row,) = found
    assert (row["records"], row["batches"]) == (3, 1)
    assert row["records_per_batch"] == 3.0


def test_a_marker_is_not_what_a_producer_wrote_last(log_dir: LogDirectory) -> None:
    # F1161: the coordinator ends the transaction of "first" after "second" wrote.
    paid = log_dir.topic("paid")
    first, second = (log_dir.transactional_producer(name) for name in ("first", "second"))
    first.records(paid, [ProducerRecord("a", "1", timestamp_ms=SECOND)])
    second.records(paid, [ProducerRecord("b", "2", timestamp_ms=SECOND + 1000)])
    second.commit()
    first.abort()
    path = log_dir.write()
    times = {
        row["last_timestamp_ms"]: row["producer_id"]
        for row in rows(path, "--by", "producer", "--topic", "paid")
    }
    assert set(times) == {SECOND, SECOND + 1000}
    (row,) = rows(path, *ALWAYS, "--topic", "paid")
    assert row["last_timestamp_ms"] == SECOND + 1000
    assert row["last_producer_id"] == times[SECOND + 1000]


def test_options_that_mean_nothing_for_a_period_are_refused(log_dir: LogDirectory) -> None:
    for option in ("--quick", "--deep", "--savings"):
        code, _, error = run(log_dir.write(), "--from-time", "-7d", option)
        assert code == ExitCode.WRONG_ARGUMENTS
        assert option in error
    assert run(log_dir.write(), *ALWAYS, "--by", "kind")[0] == ExitCode.WRONG_ARGUMENTS


def test_a_period_after_the_end_of_a_copy_says_where_that_is(log_dir: LogDirectory) -> None:
    # F1352
    code, out, _ = run(log_dir.write(), "--from-time", SECOND + 6001)
    assert code == 0
    assert "nothing in this period: the newest record is of 2023-11-14T22:13:26.000Z; " in out
    assert "the hour before it: --from-time 2023-11-14T21:13:26.000Z" in out
    code, _, error = run(log_dir.write(), "--from-time", SECOND, "--until-time", SECOND - 1)
    assert (code, "a time not before --from-time" in error) == (ExitCode.WRONG_ARGUMENTS, True)
