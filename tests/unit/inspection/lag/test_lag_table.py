"""Rows of table `consumer_lag` as tasks make them, their totals, and which rows are chosen.

That a row is what kafka-consumer-groups printed is in tests/golden/groups/test_consumer_groups.py,
how a log's lag is counted in tests/unit/inspection/lag. Rules: F315, F325 to F327.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.commit_status import KnownTopic, KnownTopics
from kafkalog.coordination.groups.lag_question import ChosenNames, LagQuestion
from kafkalog.inspection.groups.placed_commits import of_placed_schema
from kafkalog.inspection.lag.chosen_rows import chosen_rows, found_names, group_count, group_digests
from kafkalog.inspection.lag.lag_table import LagTotals, LogPlace, lag_table, most_behind
from tests.support.logs.commit_logs import write_topic
from tests.support.logs.log_dirs import LOG_STARTS, add_meta_properties, checkpoint_text

NOW_MS = 1_700_000_100_000
WEEK_MS = 7 * 24 * 60 * 60 * 1000
LEAST = -(2**63)


def placed(*rows: dict[str, Any]) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    types = {
        field.name: field.type
        for field in [*arrow_schema("offset_commits"), *arrow_schema("consumer_lag")]
    }
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    return of_placed_schema(pa.table(arrays))


def commit(group: str, topic: str, partition: int, offset: int | None, **others: Any) -> Any:
    return {
        "cluster_id": "c",
        "internal_partition": 3,
        "group_id": group,
        "topic": topic,
        "partition": partition,
        "committed_offset": offset,
        "commit_timestamp_ms": NOW_MS - 1000,
        "has_open_commit": False,
        **others,
    }


def test_rows_have_the_account_of_their_own_log_and_times_of_their_own(tmp_path: Path) -> None:
    # Records come every second until NOW_MS, those of `old` below offset 4 are deleted.
    add_meta_properties(tmp_path)
    times = [NOW_MS - 1000 * (10 - number) for number in range(10)]
    for topic in ("new", "old"):
        write_topic(tmp_path, topic, times)
    (tmp_path / LOG_STARTS).write_text(checkpoint_text({("old", 0): 4}))
    rows = placed(
        commit("b", "old", 0, 2),
        commit("a", "new", 0, 7),
        commit("c", "gone", 5, 1),
        commit("c", "new", 0, None),
        commit("z", "new", 0, 10, internal_partition=None, commit_timestamp_ms=LEAST),
    )
    places = {(topic, 0): LogPlace(str(tmp_path / f"{topic}-0"), 8) for topic in ("new", "old")}
    topics = KnownTopics(
        {
            ("c", topic): [KnownTopic("c", topic, None, is_deleted=False)]
            for topic in ("new", "old")
        },
        frozenset(),
    )
    found = lag_table(rows, places, topics, LagQuestion(NOW_MS, None, False, WEEK_MS))
    found.validate(full=True)
    assert found.schema == arrow_schema("consumer_lag")
    names = ("commit_status", "log_broker_id", "lag", "readable_records", "below_log_start")
    by_group = {
        (row["group_id"], row["topic"]): tuple(row[name] for name in names)
        for row in found.to_pylist()
    }
    assert by_group == {
        ("a", "new"): ("current", 8, 3, 3, 0),
        ("b", "old"): ("current", 8, 8, 6, 2),
        ("c", "gone"): ("unknown_topic", None, None, None, None),
        ("c", "new"): ("no_commit", 8, None, None, None),
        ("z", "new"): ("current", 8, 0, 0, 0),
    }
    ages = ("time_lag_ms", "freshness_ms", "wait_before_commit_ms", "offset_storage", "at_ms")
    of = {row["group_id"]: tuple(row[name] for name in ages) for row in found.to_pylist()}
    # F315: the next record of a is 3 s old, the newest 1 s; its last consumed one 4 s, and was
    # committed 1 s ago.
    assert of["a"] == (3000, 2000, 3000, "kafka", NOW_MS)
    # No integer of 64 bits is the time between the least one and a time of ours.
    assert of["z"] == (0, None, None, "zookeeper", NOW_MS)


def test_a_commit_beyond_the_end_of_its_epoch_is_resumed_there(tmp_path: Path) -> None:
    # F943
    add_meta_properties(tmp_path)
    write_topic(tmp_path, "orders", [NOW_MS - 1000] * 16)
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n2 12\n")
    rows = placed(
        commit("g", "orders", 0, 14, leader_epoch=0), commit("h", "orders", 0, 14, leader_epoch=2)
    )
    places = {("orders", 0): LogPlace(str(tmp_path / "orders-0"), 8)}
    topic = KnownTopic("c", "orders", None, is_deleted=False)
    topics = KnownTopics({("c", "orders"): [topic]}, frozenset())
    for as_of_ms, expected in ((None, [(12, 2), (None, None)]), (NOW_MS, [(None, None)] * 2)):
        question = LagQuestion(NOW_MS, as_of_ms, False, WEEK_MS)
        found = lag_table(rows, places, topics, question)
        in_order = sorted(found.to_pylist(), key=lambda row: str(row["group_id"]))
        assert [(row["resumes_at"], row["records_again"]) for row in in_order] == expected
        assert LagTotals.of(found).resumed == (as_of_ms is None)


def rows_of_table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=arrow_schema("consumer_lag"))


def test_totals_count_commits_that_count() -> None:
    behind = {"committed_offset": 1, "lag": 5, "readable_records": 5, "time_lag_ms": -7}
    first = rows_of_table(
        {"commit_status": "current", **behind, "high_watermark_from": "create_time"},
        {"commit_status": "expired", **behind, "readable_records": 9, "damaged": 2},
        {"commit_status": "unknown_topic", "committed_offset": 1, "below_log_start": 3},
        {"commit_status": "no_commit"},
    )
    second = rows_of_table(
        {"commit_status": "unconfirmed", "committed_offset": 1, "lag": 0, "readable_records": 0}
    )
    totals = LagTotals.of(second)
    assert (totals.most_records, totals.time_lag_ms) == (None, None)
    totals.add(LagTotals.of(first))
    assert totals == LagTotals(
        partitions=5,
        behind=2,
        records=14,
        most_records=9,
        time_lag_ms=-7,
        stale=1,
        expired=1,
        unknown=1,
        by_clocks=1,
        damaged=1,
    )


def test_rows_with_most_to_read_come_from_all_tasks() -> None:
    tables = [
        rows_of_table(*({"group_id": f"g{n}", "readable_records": n} for n in numbers))
        for numbers in ([3, 1], [2, None])
    ]
    assert most_behind(tables, 2)["group_id"].to_pylist() == ["g3", "g2"]
    assert set(most_behind(tables, 9)["group_id"].to_pylist()) == {"g3", "g2", "g1", "gNone"}
    assert len(most_behind([], 9)) == 0


def test_rows_are_chosen_by_names_and_patterns() -> None:
    rows = placed(
        commit("reader", "orders", 0, 1),
        commit("reader", "clicks", 0, 1),
        commit("writer", "orders", 0, 1),
        commit("writer", "orders", 1, 1),
    )

    def chosen(names: ChosenNames) -> list[tuple[str, str]]:
        found = chosen_rows(rows, names)
        return list(zip(*(found[name].to_pylist() for name in ("group_id", "topic")), strict=True))

    assert len(chosen(ChosenNames())) == 4
    assert chosen(ChosenNames(group_pattern="^read", topic_pattern="s$")) == [
        ("reader", "orders"),
        ("reader", "clicks"),
    ]
    either = ChosenNames(groups=frozenset({"reader", "nobody"}), group_pattern="nothing")
    assert {group for group, _ in chosen(either)} == {"reader"}
    by_topic = either._replace(topics=frozenset({"orders"}))
    found = found_names(chosen_rows(rows, by_topic), by_topic)
    assert found == (frozenset({"reader"}), frozenset({"orders"}))


def test_a_group_counts_once_however_many_tasks_have_seen_it() -> None:
    rows = placed(commit("a", "t", 0, 1), commit("a", "t", 1, 1), commit("b", "t", 0, 1))
    of_others = placed(commit("a", "t", 0, 1, cluster_id="d"), commit("b", "u", 0, 1))
    assert group_count(group_digests(rows)) == 2
    assert group_count(group_digests(rows) + group_digests(of_others)) == 3
    assert group_count(b"") == 0
