"""`kafkalog sql` on real brokers' files: what reaches the reader changes no row, and lag is what
kafka-consumer-groups printed. Rules: docs/sql.md F1070 to F1074."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import kafkalog
from kafkalog.command_line.main import kafkalog as command
from kafkalog.command_line.sql.answers import Answers, run_prompt
from kafkalog.tables.database import opened_database
from tests.support.golden.described_groups import printed_lags
from tests.support.repository import ROOT

Unpacked = Callable[[str], Path]
SHOP = str(ROOT / "examples" / "shop-week")


def log_dirs(logs: Path) -> list[str]:
    return sorted(str(path.parent) for path in logs.rglob("meta.properties"))


def run(*arguments: str, text: str | None = None) -> tuple[int, str, str]:
    given = ["sql", *arguments, "--processes", "1"]
    result = CliRunner().invoke(command, given, input=text)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: str) -> list[dict[str, Any]]:
    code, out, err = run(*arguments, "--format", "json")
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module", params=["kafka44", "kafka39zk"])
def both(
    request: pytest.FixtureRequest, unpacked: Unpacked
) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]]:
    """A connection to a real broker's files, and one to all of their rows in memory."""
    paths = log_dirs(unpacked(f"{request.param}.logs"))
    from_files, in_memory = kafkalog.sql(paths, processes=1), duckdb.connect(":memory:")
    in_memory.execute("set timezone = 'UTC'")
    for table in ("records", "batches", "segments", "transactions", "offset_commits"):
        given: dict[str, Any] = {"topics": "*"} if table != "offset_commits" else {}
        given |= {"include_headers": True, "include_metadata": True} if table == "records" else {}
        in_memory.register(table, kafkalog.scan(paths, table, **given).to_table())
    with from_files, in_memory:
        yield from_files, in_memory


@pytest.mark.parametrize(
    "query",
    [
        "select topic, partition, count(*), min(records.offset), max(records.offset) from records "
        "group by all",
        "select md5(value), key from records r where topic like '%multi-3%' and r.offset > 300",
        'select topic, partition, "offset", md5(value), file from records where "offset" in '
        "(3, 900) or partition = 2",
        'select "offset" from records where "offset" between 100 and 105 and partition <> 0',
        "select topic, records.offset from records where topic like '%.%' and value is null",
        'select count(*) from records where "timestamp" >= '
        '(select quantile_disc("timestamp", 0.7) from records)',
        'select topic, "offset" from records where timestampMs < '
        "(select quantile_disc(timestampMs, 0.2) from records)",
        'select count(*) from records where "timestamp" is null or "offset" = 0',
        "select topic, partition, max(last_offset) from batches where partition = 1 group by all",
        "select file, base_offset from segments where topic is not null and base_offset > 0",
        "select topic, outcome, count(*) from transactions where topic <> 'none' group by all",
        "select group_id, topic, committed_offset from offset_commits where partition = 0",
        "select r.topic, count(*) from records r join segments s on r.topic = s.topic and "
        "r.partition = s.partition and r.offset = s.base_offset group by all",
        "select topic, partition, records.offset from records order by records.offset desc, topic "
        "limit 5",
    ],
    ids=range(14),
)
def test_a_query_has_the_rows_that_it_has_over_everything_in_memory(
    both: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection], query: str
) -> None:
    # F1070, F1071
    found, expected = (sorted(map(repr, each.execute(query).fetchall())) for each in both)
    assert found == expected
    assert found


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_lag_is_what_the_tool_printed(unpacked: Unpacked, name: str) -> None:
    # F310, F1074
    query = (
        "select group_id, topic, partition, committed_offset, lag "
        "from consumer_lag where committed_offset is not null"
    )
    found = {
        (row["group_id"], row["topic"], row["partition"]): (row["committed_offset"], row["lag"])
        for row in rows(*log_dirs(unpacked(f"{name}.logs")), query)
    }
    printed = {
        place: (line.current_offset, line.lag)
        for place, line in printed_lags(unpacked(f"{name}.golden")).items()
        if line.current_offset is not None and line.lag is not None
    }
    assert {place: found[place] for place in printed if place in found} == {
        place: line for place, line in printed.items() if place in found
    }
    assert len(printed.keys() & found.keys()) > 3


def test_formats_and_files(tmp_path: Path) -> None:
    query = (
        'select topic, records.offset, key, "timestamp", sum(partition) over () as total from '
        "records where topic = 'customers' and records.offset < 2"
    )
    listed = rows(SHOP, query)
    assert [(row["topic"], row["offset"], row["total"]) for row in listed] == [
        ("customers", 0, 0),
        ("customers", 1, 0),
    ]
    assert listed[0]["timestamp"].endswith("Z")
    _, out, _ = run(SHOP, query, "--format", "csv")
    assert [row["key"] for row in csv.DictReader(io.StringIO(out))] == [
        row["key"] for row in listed
    ]
    code, out, err = run(SHOP, query, "--output", str(tmp_path / "found.jsonl"))
    assert (code, out, err) == (0, "", f"2 rows written to {tmp_path}/found.jsonl\n")
    lines = (tmp_path / "found.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == listed
    code, _, err = run(SHOP, query, "--output", str(tmp_path / "found.xlsx"))
    assert code == 2
    assert "found.xlsx' does not end in .json, .jsonl, .csv, .parquet or .txt: add --format" in err
    run(SHOP, query, "--output", str(tmp_path / "found.parquet"))
    table = pq.read_table(tmp_path / "found.parquet")
    assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert table["offset"].to_pylist() == [0, 1]
    code, _, err = run(SHOP, query, "--output", f"{SHOP}/found.csv")
    assert (code, "outside of" in err) == (2, True)
    code, _, err = run(SHOP, query, "--format", "parquet")
    assert (code, err) == (2, "error: --format: parquet needs --output FILE\n")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from recods", 'Did you mean "records"?'),
        ("select ofset from records", '"offset"'),
        ("select offset from records", 'offset is a word of SQL: write "offset" in quotes'),
        ("select 'not closed", "Parser Error"),
        ("select cast(topic as int) from records", "Conversion Error"),
    ],
)
def test_a_query_that_cannot_be_answered_is_a_line(query: str, said: str) -> None:
    code, out, err = run(SHOP, query)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: QUERY: ")
    assert said in err


def test_options_are_those_of_other_commands() -> None:
    # F1074: lag as of a time is what `kafkalog groups` shows.
    as_of = "2026-11-14T02:00:00Z"
    query = "select group_id as group, topic, partition, lag from consumer_lag order by all"
    found = rows(SHOP, query, "--as-of", as_of)
    given = ["groups", SHOP, "--as-of", as_of, "--format", "json", "--processes", "1"]
    lines = CliRunner().invoke(command, given).stdout.splitlines()
    expected = [
        (row["group"], row["topic"], row["partition"], row["lag"]) for row in map(json.loads, lines)
    ]
    assert [tuple(row.values()) for row in found] == sorted(expected)
    of_topic = rows(SHOP, "select distinct topic from records", "--topic", "customers")
    assert of_topic == [{"topic": "customers"}]
    code, _, err = run(SHOP, "select 1 from records", "--topic", "custmers")
    assert (code, "--topic: 'custmers'" in err, "did you mean customers?" in err) == (2, True, True)
    query = "select sum(value_decoded.items) as items from records where value_error is null"
    (counted,) = rows(SHOP, query, "--topic", "orders", "--value-format", "json")
    raw = "select sum((decode(value)::json->>'items')::int) as items from records where "
    valid = raw + "json_valid(try(decode(value)))"
    assert [counted] == rows(SHOP, valid, "--topic", "orders")


def test_the_history_of_lag_is_what_its_command_shows() -> None:
    # F1074
    until = "2026-11-16T00:00:00Z"
    for table, by in (("lag_history", "event"), ("group_generations", "generation")):
        given = ["lag-history", SHOP, "--until-time", until, "--by", by, "--format", "json"]
        result = CliRunner().invoke(command, [*given, "--processes", "1"])
        expected = [json.loads(line) for line in result.stdout.splitlines()]
        found = rows(SHOP, f"select * from {table}", "--as-of", until)
        assert len(found) == len(expected) > 0
        names = [name for name in expected[0] if name in ("group_id", "topic", "partition", "lag")]
        shown = [sorted(repr([row[name] for name in names]) for row in each) for each in (
            found, expected)]  # fmt: skip
        assert shown[0] == shown[1]


def test_queries_come_from_stdin_without_one() -> None:
    code, out, _ = run(SHOP, text="select count(*) as records\nfrom records\n")
    assert (code, out.split()) == (0, ["RECORDS", "6041"])
    code, _, err = run()
    assert (code, "Missing argument" in err) == (2, True)


def test_the_prompt_goes_on_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter(["select count(*)", "from customers;", "", "select 1 as one;", "exit"])
    run_prompt(opened_database([SHOP], {}), Answers("csv", None, [SHOP]), lambda _: next(lines))
    out, err = capsys.readouterr()
    assert out.endswith("one\n1\n")
    assert "Table with name customers does not exist" in err


@pytest.mark.parametrize(
    ("table", "command_words", "said"),
    [
        ("transaction_report", ["txns"], "missing: __transaction_state-0: transactions unknown"),
        ("consumer_lag", ["groups"], "31 offsets are missing: 31 of __consumer_offsets-1"),
        ("commit_history", ["groups", "--history", "shop.g-classic"], "31 of __consumer_offsets-1"),
        ("schema_ids", ["schemas"], "which schemas they are is not known"),
        ("records", ["ls"], "the checkpoints of {path} name: __consumer_offsets-1, __transaction"),
    ],
)
def test_what_is_not_here_is_said_as_commands_say_it(
    table: str,
    command_words: list[str],
    said: str,
    unpacked: Unpacked,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F1292: of a copy without three of the broker's partitions.
    copy = tmp_path / "copy"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", copy)
    for name in ("__consumer_offsets-1", "__transaction_state-0", "shop.raw-0"):
        shutil.rmtree(copy / name)
    said = said.format(path=copy)
    result = CliRunner().invoke(command, [*command_words, str(copy), "--processes", "1"])
    assert said in result.output
    kafkalog.scan(str(copy), table, processes=1).to_table()
    assert any(said in record.getMessage() for record in caplog.records)
    caplog.clear()
    database = opened_database([str(copy)], {}, processes=1)
    lines = iter([f"select count(*) from {table};", "exit"])
    run_prompt(database, Answers("csv", None, [str(copy)]), lambda _: next(lines))
    assert any(said in record.getMessage() for record in caplog.records)


def test_missing_partitions_are_said_once_for_each_query_about_their_topics(
    unpacked: Unpacked, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F1292
    copy = tmp_path / "copy"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", copy)
    shutil.rmtree(copy / "shop.raw-0")
    database = opened_database([str(copy)], {}, processes=1)
    answers = Answers("csv", None, [str(copy)])
    said = f"missing: 1 partition that the checkpoints of {copy} name: shop.raw-0"

    def told(query: str) -> int:
        caplog.clear()
        answers.write(database, query)
        return [record.getMessage() for record in caplog.records].count(said)

    assert told("select count(*) from records where topic = 'shop.tx'") == 0
    for _ in range(2):
        assert told("select count(*) from records where topic = 'shop.raw'") == 1
        assert told("select (select count(*) from records), (select count(*) from faults)") == 1


def test_a_query_of_records_says_that_a_past_time_changes_no_row(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # F1350
    query = "select count(*) as records from records where topic = 'orders'"
    with_time = run(SHOP, "--as-of", "2026-11-12", query)
    assert "--as-of (asOf) does not apply to records, which has all rows" in caplog.text
    assert with_time == run(SHOP, query)
    run(SHOP, "--as-of", "2026-11-12", "from schema_ids")
    assert "does not apply to schema_ids" in caplog.text
    caplog.clear()
    run(SHOP, "--as-of", "2026-11-16", "select lag from consumer_lag")
    run(SHOP, "select count(*) from records")
    assert "does not apply" not in caplog.text
