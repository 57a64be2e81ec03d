"""A file with the options of each topic: which runs it asks for, and what is refused. Rules: F1090
to F1092."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.table_options import table_options
from kafkalog.views.options.topics_file import TopicRun, topic_runs, topics_file_option, worst_code
from tests.support.repository import SHOP


def runs_of(folder: Path, text: str, *arguments: str) -> list[TopicRun]:
    """What a command with the options of tables makes of a file."""
    path = folder / "topics.yaml"
    path.write_text(text)

    @click.command()
    @click.argument("paths", nargs=-1, required=True)
    @click.option("--topic", "topics", multiple=True)
    @table_options
    @topics_file_option
    def command(**_: object) -> None:
        """Do nothing."""

    context = command.make_context("command", ["DIR", "--topics-file", str(path), *arguments])
    return topic_runs(str(path), context)


def test_a_topic_has_its_own_options_then_the_defaults_then_the_command_line(
    tmp_path: Path,
) -> None:
    # F1090
    text = """
        defaults: {compression: gzip}
        topics:
          orders: {partition-by: [topic, day]}
          payments: {compression: lz4, table: lake.raw.payments}
    """
    first, second = runs_of(tmp_path, text, "--compression", "none", "--compression-level", "3")
    assert (first.topics, second.topics) == (("orders",), ("payments",))
    chosen = [
        (run.parameters["compression"], run.parameters["partition_by"], run.parameters["table"])
        for run in (first, second)
    ]
    assert chosen == [("gzip", ("topic", "day"), None), ("lz4", (), "lake.raw.payments")]
    assert {run.parameters["compression_level"] for run in (first, second)} == {3}
    assert {run.parameters["paths"] for run in (first, second)} == {("DIR",)}


def test_topics_with_the_same_options_are_one_run(tmp_path: Path) -> None:
    # F1091
    text = "topics: {orders: , users: {compression: lz4}, carts: {}}"
    assert [run.topics for run in runs_of(tmp_path, text)] == [("orders", "carts"), ("users",)]


def test_each_topic_has_a_table_of_its_own_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    # F1091
    text = "topics: {a: {}, b: {table: x.y.b}, c: {table_per_topic: false}}"
    runs = runs_of(tmp_path, text)
    assert [run.parameters["table_per_topic"] for run in runs] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("topics: {a: {compresion: lz4}}", r"topics\.a: .*did you mean compression"),
        ("topics: {a: {compression: lz5}}", r"a: --compression: 'lz5' is not one of"),
        ("topics: {a: {topics: b}}", "topics.a: 'topics' is not valid, expected an option"),
        ("topics: {a: {compression: [lz4, gzip]}}", r"a\.compression: .* expected one value"),
        ("topics: {a: 7}", "topics.a: 7 is not valid, expected a mapping"),
        ("topics: {}", "at least one topic"),
        ("topics: [a]", "a mapping with topics"),
        ("topic: {a: {}}\ntopics: {a: }", "'topic' is not valid, expected one of defaults, topics"),
        ("a: b: c", "expected YAML: mapping values are not allowed here"),
        ("topics: {a: {target_file_size: 3 pebibytes}}", "a: --target-file-size:"),
    ],
)
def test_what_a_file_has_wrong_is_named_with_its_place(
    text: str, told: str, tmp_path: Path
) -> None:
    # F1090
    with pytest.raises(OptionError, match=told) as error:
        runs_of(tmp_path, text)
    assert "--topics-file" in str(error.value) and "topics.yaml" in str(error.value)


def test_null_is_an_option_s_own_default(tmp_path: Path) -> None:
    # F1090
    text = "topics: {a: {compression: null, partition_by: null, catalog: null}}"
    given = ("--compression", "lz4", "--partition-by", "day", "--catalog", "lake")
    (run,) = runs_of(tmp_path, text, *given)
    chosen = [run.parameters[name] for name in ("compression", "partition_by", "catalog")]
    assert chosen == ["zstd", (), None]


def test_topics_are_named_in_the_file_alone(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--topics-file cannot be used with --topic"):
        runs_of(tmp_path, "topics: {a: {}}", "--topic", "b")


def test_a_file_that_is_not_there_is_a_wrong_argument(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="a file that can be read"):
        topic_runs(str(tmp_path / "none.yaml"), click.Context(click.Command("command")))


def test_the_worst_of_all_runs_counts_and_an_interrupted_one_is_the_last() -> None:
    codes = iter([0, 3, 1, 130, 0])
    assert worst_code(codes) == 130
    assert next(codes) == 0
    assert worst_code([0, 3, 2]) == 3


def test_a_topic_that_fails_leaves_the_others(tmp_path: Path) -> None:
    # F1092. The topics of examples/shop-week, in which kafka-get-offsets counts 300 and 3186.
    file = tmp_path / "topics.yaml"
    file.write_text("topics: {orders: {}, none: {compression: lz4}, customers: {mode: PERMISSIVE}}")
    given = ["export", str(SHOP), "--topics-file", str(file), "--output-dir", str(tmp_path / "out")]
    done = CliRunner().invoke(kafkalog, given)
    assert done.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--topic: 'none' is not valid" in done.stderr
    assert "read 3,186 offsets of 3 partitions" in done.stdout
    assert "read 300 offsets of 1 partition" in done.stdout
    tables = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert tables == ["customers", "ingest_manifest", "orders"]
    again = CliRunner().invoke(kafkalog, given)
    assert again.stdout.count("nothing is new") == 2
