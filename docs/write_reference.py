"""Writes docs/reference from what it describes: `make reference`.

Tables come from schemas/tables, jobs and commands from their --help, options from the sources'
lists of names. What an option means stands by hand in the pages that the list links to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafkalog.command_line.main import COMMANDS, kafkalog
from kafkalog.coordination.metadata.config_validators import config_definitions
from kafkalog.coordination.metadata.record_versions import read_versions
from kafkalog.coordination.metadata.releases import (
    METADATA_VERSION,
    features_of,
    made_releases,
    metadata_version_name,
    metadata_versions,
    read_releases,
    release_of,
    release_table,
)
from kafkalog.messages.catalog import topic_family
from kafkalog.schemas import table_fields, table_names
from kafkalog.tables.question_source import QUESTION_TABLES
from kafkalog.views.options.options import OPTION_NAMES, VIEW_TABLES
from kafkalog.views.options.write_options import WRITE_OPTION_NAMES
from kafkalog.views.options.zookeeper.zookeeper_options import (
    ZOOKEEPER_OPTION_NAMES,
    ZOOKEEPER_VIEW_TABLES,
)

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
JOBS = sorted(path.stem for path in (ROOT / "jobs").glob("[a-z]*.py"))
# Tests compare what another width would wrap elsewhere.
_WIDTH = "100"
_RELEASES = "## Releases of Kafka"
_MADE = "Made by `make reference`: change what it describes, not this page.\n"
# Which page says what the options of a source mean.
_OPTION_PAGES = {
    'reading `format("kafkalog")`': ("options.md#options", OPTION_NAMES),
    'writing `format("kafkalog")`': ("writing.md#options", WRITE_OPTION_NAMES),
    '`format("zookeeper")`': ("zookeeper.md#options", ZOOKEEPER_OPTION_NAMES),
}


def reference_pages() -> dict[str, str]:
    """The text of each page by its name."""
    return {
        "tables.md": tables_page(),
        **table_pages(),
        "options.md": options_page(),
        "jobs.md": jobs_page(),
        "command-line.md": command_line_page(),
        "../supported.md": supported_page(),
    }


def supported_page() -> str:
    """The page of what is supported, with the section of releases made new."""
    text = (ROOT / "docs" / "supported.md").read_text(encoding="utf-8")
    return text.partition(_RELEASES)[0] + _RELEASES + "\n\n" + releases_section()


def releases_section() -> str:
    """Releases of Kafka: the levels of features that they make and read, what else they were the
    first to read, and to refuse."""
    lines = [
        "`schemas/releases` has what releases make, read and refuse, written from the classes in "
        "Kafka's jars ([F1010 to F1018](format.md#releases-of-kafka)); `make reference` makes "
        "these tables of it. `kafkalog metadata --by feature --kafka 4.1` compares a cluster with "
        "it. Of releases before 3.9 it is not known what they read.",
        "",
        "| Kafka | `metadata.version` | other features of a new cluster | `metadata.version` and "
        "other features that it reads |",
        "|---|---|---|---|",
    ]
    for release in made_releases():
        made = [level for level in metadata_versions() if release_of(level) == release]
        others = _levels_text(features_of(release), METADATA_VERSION)
        lines.append(f"| {release} | {_made_text(made)} | {others} | {_read_text(release)} |")
    lines += [
        "",
        "| Kafka | was the first to read these records | limits of configs that it changed | "
        "configs that it no longer has |",
        "|---|---|---|---|",
    ]
    for before, release in pairwise(read_releases()):
        cells = (_new_records(before, release), *_config_changes(before, release))
        lines.append(
            f"| {release} | " + " | ".join(", ".join(cell) or "none" for cell in cells) + " |"
        )
    return "\n".join(lines) + "\n"


def _made_text(made: list[int]) -> str:
    names = [metadata_version_name(level) for level in made]
    if len(made) == 1:
        return f"{made[0]} ({names[0]})"
    return f"{made[0]} to {made[-1]} ({names[0]} to {names[-1]})"


def _levels_text(levels: Mapping[str, int], but: str) -> str:
    return ", ".join(f"`{name}` {level}" for name, level in levels.items() if name != but) or "none"


def _read_text(release: str) -> str:
    known = read_releases().get(release)
    if known is None:
        return "not known"
    least, most = known[METADATA_VERSION]
    others = _levels_text({name: levels.most for name, levels in known.items()}, METADATA_VERSION)
    return f"{least} to {most}; up to {others}"


def _new_records(before: str, release: str) -> list[str]:
    found = []
    for topic in release_table("records"):
        earlier, types = read_versions(topic, before), topic_family(topic).record_types
        for number, versions in read_versions(topic, release).items():
            if number not in earlier:
                found.append(f"`{types[number].name}`")
            elif versions.last > earlier[number].last:
                found.append(f"`{types[number].name}` version {versions.last}")
    return found


def _config_changes(before: str, release: str) -> tuple[list[str], list[str]]:
    changed, gone = [], []
    for of in release_table("configs"):
        earlier, known = config_definitions(of, before), config_definitions(of, release)
        for name, definition in sorted(earlier.items()):
            if name not in known:
                gone.append(f"`{name}`")
            elif definition != known[name] and (limits := known[name].limits):
                changed.append(f"`{name}` of a {of}: {limits}")
    return changed, gone


def tables_page() -> str:
    """Every view and table: where it comes from, and the page with its columns."""
    givers = table_givers()
    lines = ["# Views and tables", "", _MADE.rstrip()]
    for name in table_names():
        count = len(table_fields(name))
        lines += ["", f"## {name}", "", f"Given by {', '.join(givers[name])}."]
        lines += [f"[Its {count} columns](tables/{name}.md)."]
    return "\n".join(lines) + "\n"


def table_pages() -> dict[str, str]:
    """A page for each view or table: where it comes from, and its columns with types and comments;
    by name."""
    pages = {}
    for name, givers in table_givers().items():
        given = ", ".join(givers).replace("](", "](../")
        lines = [f"# {name}", "", _MADE, f"Given by {given}. All: [tables](../tables.md).", ""]
        lines += ["| column | type | |", "|---|---|---|"]
        lines += [_column_row(field) for field in table_fields(name)]
        pages[f"tables/{name}.md"] = "\n".join(lines) + "\n"
    return pages


def table_givers() -> dict[str, list[str]]:
    """Which views and jobs give a table, and whether `kafkalog sql` asks its question."""
    givers: dict[str, list[str]] = {name: [] for name in table_names()}
    for view, name in VIEW_TABLES.items():
        givers[name].append(f"view [`{view.value}`](../options.md#views) of `kafkalog`")
    for zookeeper_view, name in ZOOKEEPER_VIEW_TABLES.items():
        view_name = zookeeper_view.value
        givers[name].append(f"view [`{view_name}`](../zookeeper.md#views) of `zookeeper`")
    for job in JOBS:
        for name in job_tables(job):
            givers[name].append(f"job [`{_dashed(job)}`](jobs.md#{_dashed(job)})")
    for name in QUESTION_TABLES:
        givers[name].append("[`kafkalog sql`](../sql.md#tables)")
    return givers


def job_tables(job: str) -> list[str]:
    """The tables that a job's docstring names."""
    text = import_module(f"jobs.{job}").__doc__ or ""
    words = re.findall(r"\w+", text.partition("\nTable")[2])
    return [name for name in table_names() if name in words]


def _column_row(field: dict[str, Any]) -> str:
    comment = field["metadata"]["comment"].replace("|", "\\|").replace("<", "&lt;")
    return f"| `{field['name']}` | {type_text(field['type'])} | {comment} |"


def type_text(kind: Any) -> str:
    """A type as SQL has it: `array<struct<name: string>>`."""
    if isinstance(kind, str):
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(
            kind, kind
        )
    if kind["type"] == "array":
        inner = type_text(kind["elementType"])
    elif kind["type"] == "map":
        inner = f"{type_text(kind['keyType'])}, {type_text(kind['valueType'])}"
    else:
        inner = ", ".join(f"{part['name']}: {type_text(part['type'])}" for part in kind["fields"])
    return f"{kind['type']}&lt;{inner}>"


def options_page() -> str:
    """Every option of the sources by name, and where it is explained."""
    lines = ["# Options by name", "", _MADE]
    lines += ["Names may be written in any case. What an option means stands where it links to."]
    lines += ["", "| option | of |", "|---|---|"]
    names = {name for _, known in _OPTION_PAGES.values() for name in known}
    for name in sorted(names, key=str.lower):
        places = [
            f"[{source}](../{page})"
            for source, (page, known) in _OPTION_PAGES.items()
            if name in known
        ]
        lines.append(f"| `{name}` | {', '.join(places)} |")
    return "\n".join(lines) + "\n"


def jobs_page() -> str:
    """The help of every job."""
    lines = ["# Jobs", "", _MADE, '`make job JOB=<name> ARGS="..."` does the same.', ""]
    lines += ["| job | its tables |", "|---|---|"]
    for job in JOBS:
        tables = ", ".join(f"[`{name}`](tables.md#{name})" for name in job_tables(job))
        lines.append(
            f"| [`{_dashed(job)}`](#{_dashed(job)}) | {tables or 'none: it writes files'} |"
        )
    for job in JOBS:
        lines += ["", f"## {_dashed(job)}", "", "```", job_help(job).rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _dashed(job: str) -> str:
    """The name of a job on a command line."""
    return job.replace("_", "-")


def job_help(job: str) -> str:
    """What `python jobs/<job>.py --help` prints."""
    told, os.environ["COLUMNS"] = StringIO(), _WIDTH
    with redirect_stdout(told):
        import_module(f"jobs.{job}").main(["--help"])
    return told.getvalue()


def command_line_page() -> str:
    """The help of the command kafkalog and of each of its commands."""
    lines = ["# The command `kafkalog`", "", _MADE]
    lines += ["What the commands are for, and what they print: [command line](../command-line.md)."]
    for name, text in _helps():
        lines += ["", f"## {name}", "", "```", text.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _helps() -> Iterator[tuple[str, str]]:
    for command in ("", *sorted(COMMANDS)):
        arguments = [*command.split(), "--help-all"] if command else ["--help"]
        told = CliRunner().invoke(kafkalog, arguments, prog_name="kafkalog", terminal_width=100)
        yield f"kafkalog {command}".rstrip(), told.output


def main() -> None:
    """Write the pages that are not up to date."""
    (FOLDER / "tables").mkdir(parents=True, exist_ok=True)
    for name, text in reference_pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
