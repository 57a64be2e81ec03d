"""`kafkalog quorum rebuild`: a new metadata directory where the majority of controllers is lost."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    table_format_option,
)
from kafkalog.coordination.metadata.releases import made_releases
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import NODE_ADDRESS, GivenPath, found_node

if TYPE_CHECKING:
    from kafkalog.command_line.metadata.rebuild_plans import CopyPlan, DataPlan
    from kafkalog.inspection.metadata.new_directory import NewDirectory

_VOTER = re.compile(NODE_ADDRESS + r"(:(?P<directory>[A-Za-z0-9_-]{22}))?")

_FEATURE = re.compile(r"(?P<name>[a-z.]{1,100})=(?P<level>[0-9]{1,5})")
_LARGEST_LEVEL = 2**15 - 1

_EPILOG = """\
\b
PATH is the log directory, or metadata.log.dir, of a controller or a broker, or a
glob of these. Give those of all nodes that are left; see kafkalog quorum.

Without --to the command only says what it would write. With --to it writes a new metadata directory
for one controller from the best copy: its records up to the last sound batch, its snapshots, the
new voters, a higher epoch. The input is only read. Stop all nodes of the cluster first. See
docs/metadata.md.

With --from-data, where no copy is left, PATH is the log directory of a broker: give those of all
brokers. The command lists each record that it would write, from the partition directories, and
which of its fields nothing on the disks says: these are guessed.

\b
Examples:
  kafkalog quorum rebuild '/mnt/*/metadata' --voter 1@controller-1:9093
  kafkalog quorum rebuild '/mnt/*/metadata' --voter 1@controller-1:9093 --to /mnt/new/metadata
  kafkalog quorum rebuild --from-data '/mnt/*/data' --voter 1@controller-1:9093
"""


class GivenVoter(NamedTuple):
    """The value of `--voter`; `directory_id` is None where it is not given."""

    voter_id: int
    host: str
    port: int
    directory_id: str | None


class _VoterType(click.ParamType[GivenVoter]):
    name = "voter"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenVoter:
        if isinstance(value, GivenVoter):
            return value
        found = found_node(_VOTER, value)
        if found is None:
            allowed = "ID@HOST:PORT or ID@HOST:PORT:DIRECTORY-ID, such as 1@controller-1:9093"
            self.fail(f"{value!r} is not {allowed}", param, ctx)
        return GivenVoter(int(found["id"]), found["host"], int(found["port"]), found["directory"])


class _FeatureType(click.ParamType[tuple[str, int]]):
    name = "feature"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        found = _FEATURE.fullmatch(value)
        if found is None or int(found["level"]) > _LARGEST_LEVEL:
            self.fail(f"{value!r} is not NAME=LEVEL, such as metadata.version=25", param, ctx)
        return found["name"], int(found["level"])


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--voter",
    "voters",
    metavar="ID@HOST:PORT[:DIRECTORY-ID]",
    type=_VoterType(),
    multiple=True,
    required=True,
    help="A controller that votes from now on, and its directory.id if it has one; repeatable.",
)
@click.option(
    "--node",
    metavar="ID",
    type=click.IntRange(min=0),
    help="The voter that gets the new directory; not needed if there is one voter.",
)
@click.option(
    "--from-data",
    is_flag=True,
    help="No copy of the metadata is left: take topics and partitions from brokers' directories.",
)
@click.option(
    "--feature",
    "features",
    metavar="NAME=LEVEL",
    type=_FeatureType(),
    multiple=True,
    help="With --from-data: the level of a feature, such as metadata.version=25, or "
    "kraft.version=1 for dynamic voters; repeatable.",
)
@click.option(
    "--release-version",
    "release",
    metavar="VERSION",
    type=click.Choice(made_releases()),
    help="With --from-data: the release of Kafka whose features are written, such as 4.4, those of "
    "--feature apart; by default the earliest that the data needs.",
)
@click.option(
    "--create-missing",
    is_flag=True,
    help="With --from-data: partitions between others that have no directory begin empty.",
)
@click.option(
    "--to",
    "target",
    metavar="DIR",
    type=GivenPath(),
    help="The new metadata directory; it must not exist.",
)
@table_format_option
def quorum_rebuild(
    paths: Sequence[str],
    voters: Sequence[GivenVoter],
    node: int | None,
    from_data: bool,
    features: Sequence[tuple[str, int]],
    release: str | None,
    create_missing: bool,
    target: str | None,
    table_format: str,
) -> ExitCode:
    """Write a new metadata directory for a controller after the majority was lost."""
    from kafkalog.command_line.metadata.rebuild_plans import (
        PLAN_COLUMNS,
        RECORD_COLUMNS,
        CopyPlan,
        DataPlan,
        next_steps,
    )
    from kafkalog.storage.files.whole_directory import whole_directory

    printed_columns(RECORD_COLUMNS if from_data else PLAN_COLUMNS)
    node_id = _node(voters, node)
    plan: CopyPlan | DataPlan
    if from_data:
        plan = DataPlan.of(paths, dict(features), creates_missing=create_missing, release=release)
    else:
        _refuse_without_data(
            {
                "--feature": bool(features),
                "--release-version": release is not None,
                "--create-missing": create_missing,
            }
        )
        plan = CopyPlan.of(paths)
    new = _new_directory(plan, voters, node_id)
    plan.write_rows(new, table_format)
    put = print_text if table_format == "text" else print_note
    for line in plan.lines(new):
        put(line)
    if target is None:
        put("nothing is written without --to DIR")
        return ExitCode.DONE
    with whole_directory(target, os.fsync) as scratch:
        plan.write(new, scratch)
    for line in (*next_steps(new, target), *plan.after_start()):
        put(line)
    return ExitCode.DONE


def _refuse_without_data(given: Mapping[str, bool]) -> None:
    option = next((name for name, is_given in given.items() if is_given), None)
    if option:
        raise RefusedOptionError(option, "only with --from-data: a copy of the metadata says it")


def _new_directory(
    plan: CopyPlan | DataPlan, voters: Sequence[GivenVoter], node_id: int
) -> NewDirectory:
    """Return what is written beside the records. Raises OptionError for a voter of a dynamic quorum
    whose directory is not known."""
    from kafkalog.inspection.metadata.new_directory import new_random_id
    from kafkalog.inspection.metadata.quorum import Voter

    new = plan.directory(
        node_id,
        tuple(
            Voter(
                each.voter_id,
                each.directory_id or (new_random_id() if each.voter_id == node_id else None),
                (f"{plan.listener_name}://{each.host}:{each.port}",),
            )
            for each in voters
        ),
    )
    unknown = [each.voter_id for each in new.voters if each.directory_id is None]
    if new.is_dynamic and unknown:
        raise OptionError(
            "--voter",
            f"{unknown[0]} without a directory",
            "ID@HOST:PORT:DIRECTORY-ID for other nodes than --node: the quorum is dynamic",
        )
    return new


def _node(voters: Sequence[GivenVoter], node: int | None) -> int:
    ids = [each.voter_id for each in voters]
    if len(set(ids)) < len(ids):
        raise OptionError("--voter", ",".join(map(str, ids)), "each id once")
    if node is None and len(ids) == 1:
        return ids[0]
    if node not in ids:
        raise OptionError("--node", node, f"the id of a voter: {', '.join(map(str, ids))}")
    return node
