"""`kafkalog rebuild-quorum`: a new metadata directory where the majority of controllers is lost."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kafkalog.command_line.terminal import print_text
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath

if TYPE_CHECKING:
    from kafkalog.inspection.metadata.rebuilt_quorum import Rebuild

_VOTER = re.compile(
    r"(?P<id>[0-9]{1,9})@(?P<host>\S+):(?P<port>[0-9]{1,5})(:(?P<directory>[A-Za-z0-9_-]{22}))?"
)

_EPILOG = """\
\b
PATH is the log directory, or metadata.log.dir, of a controller or a broker, or a
glob of these. Give those of all nodes that are left; see kafkalog quorum.

Without --to the command only says what it would write. With --to it writes a new metadata directory
for one controller from the best copy: its records up to the last sound batch, its snapshots, the
new voters, a higher epoch. The input is only read. Stop all nodes of the cluster first. See
docs/metadata.md.

\b
Examples:
  kafkalog rebuild-quorum '/mnt/*/metadata' --voter 1@controller-1:9093
  kafkalog rebuild-quorum '/mnt/*/metadata' --voter 1@controller-1:9093 --to /mnt/new/metadata
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
        found = _VOTER.fullmatch(value)
        if found is None or not 0 < int(found["port"]) < 2**16:
            allowed = "ID@HOST:PORT or ID@HOST:PORT:DIRECTORY-ID, such as 1@controller-1:9093"
            self.fail(f"{value!r} is not {allowed}", param, ctx)
        return GivenVoter(int(found["id"]), found["host"], int(found["port"]), found["directory"])


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
    "--to",
    "target",
    metavar="DIR",
    type=GivenPath(),
    help="The new metadata directory; it must not exist.",
)
def rebuild_quorum(
    paths: Sequence[str], voters: Sequence[GivenVoter], node: int | None, target: str | None
) -> ExitCode:
    """Write a new metadata directory for a controller after the majority was lost."""
    from kafkalog.inspection.metadata.copies import metadata_copies
    from kafkalog.inspection.metadata.quorum import Quorum, Voter
    from kafkalog.inspection.metadata.rebuilt_quorum import (
        Rebuild,
        listener_name,
        refuse_lost_commits,
        write_rebuilt,
    )
    from kafkalog.storage.files.whole_directory import whole_directory

    quorum = Quorum(metadata_copies(paths))
    node_id = _node(voters, node)
    refuse_lost_commits(quorum)
    name = listener_name(quorum.voters)
    new = tuple(
        Voter(
            each.voter_id,
            each.directory_id or (_new_directory_id() if each.voter_id == node_id else None),
            (f"{name}://{each.host}:{each.port}",),
        )
        for each in voters
    )
    rebuild = Rebuild(quorum, node_id, new)
    _refuse_unknown_directories(rebuild)
    for line in _plan(rebuild):
        print_text(line)
    if target is None:
        print_text("nothing is written without --to DIR")
        return ExitCode.DONE
    with whole_directory(target, os.fsync) as scratch:
        write_rebuilt(rebuild, scratch)
    for line in _next_steps(rebuild, target):
        print_text(line)
    return ExitCode.DONE


def _node(voters: Sequence[GivenVoter], node: int | None) -> int:
    ids = [each.voter_id for each in voters]
    if len(set(ids)) < len(ids):
        raise OptionError("--voter", ",".join(map(str, ids)), "each id once")
    if node is None and len(ids) == 1:
        return ids[0]
    if node not in ids:
        raise OptionError("--node", node, f"the id of a voter: {', '.join(map(str, ids))}")
    return node


def _new_directory_id() -> str:
    """Return a random id as Kafka makes it: base64 for URLs that does not begin with a dash."""
    while True:
        text = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _refuse_unknown_directories(rebuild: Rebuild) -> None:
    """Raise OptionError for a voter of a dynamic quorum whose directory is not known."""
    unknown = [each.voter_id for each in rebuild.voters if each.directory_id is None]
    if rebuild.is_dynamic and unknown:
        raise OptionError(
            "--voter",
            f"{unknown[0]} without a directory",
            "ID@HOST:PORT:DIRECTORY-ID for other nodes than --node: the quorum is dynamic",
        )


def _plan(rebuild: Rebuild) -> Iterator[str]:
    best = rebuild.quorum.best
    last_epoch, end_offset = best.position
    offsets = f"offsets {rebuild.start_offset} to {end_offset - 1}, epoch {last_epoch}"
    yield f"from {best.path}: {offsets}"
    if rebuild.snapshots:
        ends = ", ".join(str(each.end_offset) for each in rebuild.snapshots)
        yield f"snapshots that end at {ends}"
    for damage in best.damages:
        yield f"left out: {damage}"
    held = rebuild.quorum.majority_offset
    if held is None or held < end_offset:
        yield (
            "no majority of the old voters has these records: some that were committed may be "
            "missing, some may not have been committed"
        )
    kind = "dynamic" if rebuild.is_dynamic else "static"
    yield f"voters before, {kind}: {'; '.join(map(str, rebuild.quorum.voters)) or 'not known'}"
    yield f"voters from now on: {'; '.join(map(str, rebuild.voters))}"
    yield (
        f"for node {rebuild.node_id} of cluster {best.cluster_id}, directory.id "
        f"{rebuild.directory_id}: epoch {rebuild.epoch}"
    )


def _next_steps(rebuild: Rebuild, target: str) -> Iterator[str]:
    places = [
        (each.voter_id, place.partition("://")[2])
        for each in rebuild.voters
        for place in each.end_points
    ]
    yield f"{target} is written: make it log.dirs, or metadata.log.dir, of node {rebuild.node_id}"
    if rebuild.is_dynamic:
        servers = ",".join(place for _, place in places)
        yield f"set controller.quorum.bootstrap.servers={servers} on all nodes"
    else:
        voters = ",".join(f"{voter}@{place}" for voter, place in places)
        yield f"set controller.quorum.voters={voters} on all nodes"
    yield f"start node {rebuild.node_id}, then the brokers; their log directories stay as they are"
