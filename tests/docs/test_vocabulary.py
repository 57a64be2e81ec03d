"""Options have the names of the table in CONTRIBUTING.md, in commands and in jobs."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

import click
import pytest

from kafkalog.command_line.main import COMMANDS, kafkalog
from kafkalog.views.options.parameter_types import Time
from tests.support.repository import ROOT

TABLE_ROW = re.compile(r"^\| (`-.*?) \| (repeatable)? ?\| .* \|$", re.MULTILINE)
OPTION = re.compile(r"`(--[a-z-]+)(?: ([^`]+))?`")
JOBS = sorted(path.stem for path in (ROOT / "jobs").glob("[a-z]*.py"))

_DECODING = {
    "--schemas-topic",
    "--schema-registry",
    *(
        f"--{part}-{what}"
        for part in ("key", "value")
        for what in ("format", "message", "schema", "schema-id")
    ),
}

_INGEST = {
    *(*_DECODING, "--dead-letters", "--drop-decoded-bytes", "--merge-schema"),
    *("--full-refresh", "--starting-offsets-out", "--stop-at", "--topics-file"),
}

# Options that one command alone has, or that Kafka's tool of the same purpose has.
OWN = {
    "audit-consumers": {"--log-dir"},
    "check": {"--no-indexes", "--severity"},
    "compaction": {"--before"},
    "completion": set[str](),
    "diff": {"--all"},
    "dump": {"--deep", "--follow", "--key", "--payloads", "--raw", "--show-secrets"},
    "export": _INGEST,
    "find": {
        *("--header", "--key", "--largest", "--partition-count", "--partitioner"),
        *("--schema-registry", "--value-contains", "--value-path"),
    },
    "free": {"--need", "--replicas"},
    "get-offsets": {"--exclude-internal-topics", "--time", "--topic-partitions"},
    "groups": {
        *("--describe", "--lagging", "--list", "--members", "--offsets-retention", "--state"),
        *("--auto-offset-reset", "--history", "--max-lag", "--resume", "--verbose", "--why"),
    },
    "job": {"--spark-submit"},
    "lag-history": {
        *("--allowed-records", "--burrow-allowed-lag", "--burrow-expire-group"),
        *("--burrow-intervals", "--burrow-min-distance", "--burrow-minimum-complete"),
        *("--burrow-offset-refresh", "--every", "--no-progress"),
    },
    "connect": set[str](),
    "keys": set[str](),
    "ksql": {"--all"},
    "ls": {"--deep", "--quick", "--sample-size", "--savings", "--sort", "--unread"},
    "metadata": {"--commands", "--diff", "--show-secrets"},
    "mirror": set[str](),
    "positions": {"--connect-topic"},
    "migrate-offsets": {
        *("--allow-active-groups", "--allow-rewind", "--allow-unknown-cluster"),
        *("--allow-unknown-topics", "--broker-version", "--commit-interval-ms", "--commit-time"),
        *("--offsets-partitions", "--offsets-retention", "--write-segments"),
        *("--write-zookeeper-commands", "--zookeeper-shell"),
    },
    "erase": {
        *("--check", "--header", "--hmac-key", "--identifiers", "--keep", "--key", "--page"),
        *("--key-path", "--proof", "--schema-registry", "--sign-key", "--text", "--value-path"),
        "--verify",
    },
    "optimize": set[str](),
    "quorum": set[str](),
    "quorum rebuild": {
        *("--create-missing", "--feature", "--from-data", "--node", "--release-version"),
        "--voter",
    },
    "recover": {"--all", "--index-interval-bytes", "--sequences", "--shutdown"},
    "sql": {
        "--schema-registry",
        "--schemas-topic",
        "--value-format",
        "--value-message",
        "--value-schema",
    },
    "state": {*_DECODING, "--keep-tombstones", "--stop-at"},
    "status": {"--deep", "--stop-at"},
    "tier": set[str](),
    "replicas": {"--all", "--deep", "--election-json", "--export", "--leader", "--without"},
    "report": {"--show-keys"},
    "restore": {
        *("--check", "--create-missing", "--hash-inputs", "--into", "--keep-cluster-id"),
        *("--keep-retention", "--latest-topics", "--link", "--manifest", "--nodes"),
        *("--offset-gap", "--replication", "--reuse-offsets", "--schema-registry", "--strict"),
        "--verify",
    },
    "retention": {"--set"},
    "salvage": {"--compact", "--compact-topic", "--index-interval-bytes", "--keep-doubtful"},
    "schemas": set[str](),
    "streams": set[str](),
    "serve": {
        *("--advertised-listener", "--deep", "--deleted", "--groups", "--insecure", "--listen"),
        *("--max-connections", "--max-request-bytes", "--metrics", "--ready-file"),
        *("--tls-certificate", "--tls-key", "--users"),
    },
    "txns": {
        *("--all", "--describe", "--find-hanging", "--list", "--max-transaction-timeout"),
        *("--open", "--stable-offsets", "--transactional-id"),
    },
    "undelete": {"--new-topic-id", "--topic-id"},
    "vacuum": {"--dry-run", "--older-than"},
}
OWN_OF_JOBS = {
    "audit-consumers": {"--log-dir"},
    "client-topics": set[str](),
    "commit-history": set[str](),
    "consumer-lag": {"--max-lag", "--offsets-retention", "--why"},
    "ingest-topics": _INGEST,
    "group-resume": {"--auto-offset-reset"},
    "key-usage": set[str](),
    "lag-history": OWN["lag-history"],
    "migrate-offsets": OWN["migrate-offsets"],
    "diff": {"--before"},
    "plan-recovery": {"--index-interval-bytes", "--shutdown"},
    "plan-retention": {"--set"},
    "positions": OWN["positions"],
    "reconstruct-state": {*_DECODING, *("--full-refresh", "--keep-tombstones", "--stop-at")},
    "report": OWN["report"],
    "report-transactions": {"--max-transaction-timeout"},
    "restore": OWN["restore"] - {"--check", "--manifest", "--verify"},
    "salvage": OWN["salvage"],
    "schema-ids": set[str](),
    "validate-checksums": set[str](),
    "verify-compaction": {"--before"},
}
# How arguments are written: those of a job are passed on by the command `job`.
ARGUMENTS = {
    "PATH...",
    "PATH... [QUERY]",
    "PATH",
    "TABLE",
    "TABLE PATH...",
    "BEFORE",
    "AFTER",
    "{bash|zsh|fish}",
    "NAME",
    "[ARGUMENTS]...",
}


class Spelling(NamedTuple):
    """How the table writes an option."""

    metavar: str | None
    is_repeatable: bool


def vocabulary() -> dict[str, Spelling]:
    table = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Names\n")[1].split("\n## ")[0]
    return {
        name: Spelling(metavar or None, bool(repeatable))
        for names, repeatable in TABLE_ROW.findall(table)
        for name, metavar in OPTION.findall(names)
    }


class Asked(NamedTuple):
    """A command or a job, and the options that it alone has."""

    command: click.Command
    own: set[str]


def commands() -> Iterator[Asked]:
    context = click.Context(kafkalog)
    for name in COMMANDS:
        command = kafkalog.get_command(context, name)
        assert command is not None
        yield Asked(command, OWN[name])


def jobs() -> Iterator[Asked]:
    for name in JOBS:
        job: click.Command = import_module(f"jobs.{name}").main
        yield Asked(job, OWN_OF_JOBS[name.replace("_", "-")])


# Short forms as kcat has them, and journalctl's and docker's name for the begin of a period.
OTHER_NAMES = {
    "--topic": ["-t"],
    "--partition": ["-p"],
    "--offsets": ["-o"],
    "--key": ["-k"],
    "--from-time": ["--since"],
}
ALL = [*commands(), *jobs()]
of_each = pytest.mark.parametrize(
    "asked", ALL, ids=[f"{type(each.command).__name__} {each.command.name}" for each in ALL]
)


def options(command: click.Command) -> list[click.Option]:
    """Options that help shows; those of `metadata` that are short for `--by` are hidden."""
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def spelling(option: click.Option) -> Spelling:
    is_choice = isinstance(option.type, click.Choice)
    return Spelling(None if is_choice or option.is_flag else option.metavar, option.multiple)


def test_the_table_is_read() -> None:
    table = vocabulary()
    assert table["--topic"] == Spelling("TOPIC", True)
    assert table["--until-time"] == Spelling("TIME", False)
    assert len(table) > 20


@of_each
def test_every_option_is_in_the_table_or_the_commands_own(asked: Asked) -> None:
    names = {option.opts[0] for option in options(asked.command)}
    unknown = sorted(names - {*vocabulary(), *asked.own})
    assert not unknown, f"{unknown}: add to the table of CONTRIBUTING.md, or to OWN in this file"
    gone = sorted(asked.own - names)
    assert not gone, f"{gone}: remove from OWN in this file"
    others = {each.opts[0]: each.opts[1:] for each in options(asked.command) if each.opts[1:]}
    assert others == {name: found for name, found in OTHER_NAMES.items() if name in others}


@of_each
def test_an_option_takes_what_the_table_says(asked: Asked) -> None:
    table = vocabulary()
    shared = [option for option in options(asked.command) if option.opts[0] in table]
    found = {option.opts[0]: spelling(option) for option in shared}
    assert found == {option: table[option] for option in found}


@of_each
def test_arguments_are_paths(asked: Asked) -> None:
    context = click.Context(asked.command)
    arguments = [each for each in asked.command.params if isinstance(each, click.Argument)]
    assert {each.make_metavar(context) for each in arguments} <= ARGUMENTS


@of_each
def test_every_option_has_a_help_text_and_a_time_is_a_time(asked: Asked) -> None:
    assert [option.opts[0] for option in options(asked.command) if not option.help] == []
    times = [option for option in options(asked.command) if option.metavar == "TIME"]
    shared = [option for option in times if option.opts[0] not in asked.own]
    assert [option.opts[0] for option in shared if not isinstance(option.type, Time)] == []


@of_each
def test_names_have_dashes(asked: Asked) -> None:
    assert "_" not in (asked.command.name or "_")
