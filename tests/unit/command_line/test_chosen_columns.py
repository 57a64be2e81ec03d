"""--columns is refused by the table that a command prints, before anything is read."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import COMMANDS, kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.repository import SHOP

_REQUIRED = {
    "diff": ("/nowhere/later",),
    "find": ("--key", "k"),
    "migrate-offsets": ("--zookeeper", "/nowhere"),
    "quorum rebuild": ("--voter", "1@localhost:9093"),
    "salvage": ("--to", "new"),
    "undelete": ("--topic", "orders", "--to", "new"),
}
_TABLES = {
    "groups": ("--list", "--state", "--members", "--lagging", "--describe"),
    "ls": ("--savings", "--by=kind", "--by=partition", "--by=segment", "--quick", "--deep"),
    "metadata": ("--by=partition", "--by=acl", "--diff=start=end"),
    "quorum rebuild": ("--from-data",),
    "recover": ("--sequences",),
    "replicas": ("--by=loss",),
    "salvage": ("--by=range",),
    "tier": ("--by=segment",),
    "txns": ("--all", "--list", "--describe", "--stable-offsets", "--find-hanging"),
}


def with_columns() -> list[str]:
    """The commands that print a table."""
    context = click.Context(kafkalog)
    commands = {name: kafkalog.get_command(context, name) for name in COMMANDS}
    return [
        name
        for name, command in commands.items()
        if command is not None and any(each.name == "columns" for each in command.params)
    ]


def run(name: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, [*name.split(), *arguments])
    return result.exit_code, result.stderr


@pytest.mark.parametrize("table_format", ["text", "json", "csv"])
@pytest.mark.parametrize(
    ("name", "option"),
    [(name, each) for name in with_columns() for each in ((), *_TABLES.get(name, ()))],
    ids=str,
)
def test_an_unknown_column_is_refused_before_the_input_is_looked_at(
    name: str, option: str, table_format: str, tmp_path: Path
) -> None:
    given = (*_REQUIRED.get(name, ()), "--format", table_format)
    options = option.replace("--diff=start=end", "--diff start end").split() if option else ()
    # A directory to restore from must be there; there is nothing in it.
    path = str(tmp_path) if name == "undelete" else "/nowhere"
    code, said = run(name, path, *given, *options, "--columns", "nope")
    assert (code, "error: --columns: 'nope' is not valid" in said) == (
        ExitCode.WRONG_ARGUMENTS,
        True,
    ), said


def test_a_column_that_is_misspelled_is_guessed() -> None:
    code, said = run("check", "/nowhere", "--columns", "severty,file")
    assert (code, said) == (
        ExitCode.WRONG_ARGUMENTS,
        "error: --columns: 'severty' is not valid, expected columns of this table: did you mean "
        "severity? There are file, position, length, severity, kind, detail\n",
    )


def test_a_column_of_the_other_table_of_a_command_is_not_refused() -> None:
    code, said = run("retention", str(SHOP), "--by", "segment", "--columns", "reason,goes")
    assert (code, "--columns" in said) == (ExitCode.DONE, False)


def test_sound_logs_refuse_what_damaged_ones_do() -> None:
    assert run("check", str(SHOP), "--columns", "nope")[0] == ExitCode.WRONG_ARGUMENTS
    assert run("check", str(SHOP), "--columns", "kind")[0] == ExitCode.DONE


def test_a_column_that_is_empty_everywhere_is_printed_if_it_is_chosen(
    unpacked: Callable[[str], Path],
) -> None:
    # Without --columns, text leaves such columns out.
    logs = str(unpacked("kafka44.logs") / "log-dirs")
    given = ["metadata", logs, "--by", "partition"]
    shown = CliRunner().invoke(kafkalog, given).stdout
    assert "ADDING-REPLICAS" not in shown
    chosen = CliRunner().invoke(kafkalog, [*given, "--columns", "topic,adding_replicas"])
    assert chosen.stdout.splitlines()[0].split() == ["TOPIC", "ADDING-REPLICAS"]
    assert chosen.exit_code == ExitCode.DONE


def test_a_column_that_only_other_formats_print_can_be_chosen_for_text() -> None:
    given = ["recover", str(SHOP), "--all", "--columns", "topic,deleted_segments"]
    table = CliRunner().invoke(kafkalog, given).stdout.splitlines()
    assert table[0].split() == ["TOPIC", "DELETED-SEGMENTS"]
