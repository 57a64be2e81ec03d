"""`kafkalog restore`: a cluster that boots, as of one moment, from copies of brokers' disks."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kafkalog.command_line.terminal import print_note, print_text, progress_bar
from kafkalog.errors import LogDirError, OptionError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath, Topic

if TYPE_CHECKING:
    from kafkalog.questions.restore.nodes import Node
    from kafkalog.questions.restore.restoring import Restored
    from kafkalog.questions.restore.sources import Sources
    from kafkalog.views.engine import LocalViews

_NODE = re.compile(
    r"(?P<id>[0-9]{1,9})@(?P<host>[^\s:/@]+|\[[0-9a-fA-F:]+\]):(?P<port>[0-9]{1,5})"
    r"/(?P<controller>[0-9]{1,5})"
)
_LARGEST_PORT = 2**16 - 1
_DEFAULT_PLACE = ("127.0.0.1", 9092, 9093)

_EPILOG = """\
\b
PATH is a copy of a log directory of a node, or a glob of these. Give those of all nodes, and
metadata.log.dir where it is another one; see docs/restore.md.

The copies can be of different seconds: each partition is cut at the moment of --as-of. Without it
that is the last moment that all copies cover. The input is only read. The new directory appears
when it is whole, and after `kafkalog recover` has found nothing that a broker would drop from it.

\b
Examples:
  kafkalog restore /snap/b1 /snap/b2 /snap/b3 --as-of 2026-11-20T14:29:00Z --check
  kafkalog restore /snap/b1 /snap/b2 /snap/b3 --as-of 2026-11-20T14:29:00Z --to /restore
  kafkalog restore '/snap/*' --to /restore --replication 3 \\
      --nodes 1@host1:9092/9093,2@host2:9092/9093,3@host3:9092/9093
  kafkalog restore --verify /restore
"""


class _Place(NamedTuple):
    node_id: int
    host: str
    port: int
    controller_port: int


class _NodesType(click.ParamType[tuple[_Place, ...]]):
    name = "nodes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[_Place, ...]:
        if isinstance(value, tuple):
            return value
        places = tuple(self._place(each, param, ctx) for each in value.split(","))
        if len({each.node_id for each in places}) < len(places):
            self.fail(f"{value!r} names a node twice", param, ctx)
        return places

    def _place(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Place:
        found = _NODE.fullmatch(value)
        ports = [int(found["port"]), int(found["controller"])] if found else []
        if found is None or not all(0 < port <= _LARGEST_PORT for port in ports):
            example = "ID@HOST:PORT/CONTROLLER-PORT, such as 1@host1:9092/9093"
            self.fail(f"{value!r} is not {example}", param, ctx)
        return _Place(int(found["id"]), found["host"], *ports)


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--to", "target", metavar="DIR", type=GivenPath(), help="The new directory; it must not exist."
)
@shared.as_of_option(
    "Restore the cluster as of this time; by default the last that all copies have"
)
@click.option("--check", "is_check", is_flag=True, help="Show the plan, and write nothing.")
@click.option(
    "--strict", is_flag=True, help="Write nothing if the result would not be exact or not whole."
)
@click.option(
    "--nodes",
    metavar="ID@HOST:PORT/CONTROLLER-PORT,...",
    type=_NodesType(),
    help="The nodes of the new cluster, each broker and controller, by default one on 127.0.0.1; "
    "of several each gets a directory node-ID below --to.",
)
@click.option(
    "--replication",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="On how many of the nodes each partition is.",
)
@shared.topic_option("Only this topic, beside the coordinators' own; repeatable.")
@shared.topic_pattern_option()
@shared.group_pattern_option
@click.option(
    "--latest-topics",
    metavar="TOPIC",
    type=Topic(),
    multiple=True,
    help="Take all records of this topic, later ones too, such as _schemas; repeatable.",
)
@click.option(
    "--keep-cluster-id",
    is_flag=True,
    help="Keep the id of the old cluster, instead of a new one that its nodes refuse.",
)
@click.option(
    "--create-missing",
    is_flag=True,
    help="Topics and partitions of which there is no copy begin empty, instead of being left out.",
)
@click.option(
    "--keep-retention",
    is_flag=True,
    help="Keep the retention of topics: a broker can delete old records soon after its start.",
)
@click.option(
    "--reuse-offsets",
    is_flag=True,
    help="Let logs go on where they were cut: what was read beyond it has other records then.",
)
@click.option(
    "--offset-gap",
    metavar="N",
    type=click.IntRange(0, 2**30),
    default=1_000_000,
    show_default=True,
    help="Leave so many offsets after the end of the copies unused, for records that were written "
    "after these were made.",
)
@click.option(
    "--link",
    "links",
    is_flag=True,
    help="Hard links to whole segments instead of copies: nothing may write to the input then.",
)
@shared.suppress_option(
    "Leave out the records of the identifiers in this file, one a line, as `kafkalog erase "
    "--identifiers` has it."
)
@click.option(
    "--verify",
    metavar="DIR",
    type=GivenPath(),
    help="Compare a restored directory, before its first start, with its manifest.",
)
@click.option(
    "--manifest",
    metavar="FILE",
    type=GivenPath(),
    help="With --verify: the manifest, by default DIR/manifest.json.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Text for people, or the manifest as JSON.",
)
@shared.processes_option
def restore(
    paths: Sequence[str],
    target: str | None,
    as_of: int | None,
    is_check: bool,
    strict: bool,
    nodes: tuple[_Place, ...] | None,
    replication: int,
    topics: Sequence[str],
    topic_pattern: str | None,
    group_pattern: str | None,
    latest_topics: Sequence[str],
    keep_cluster_id: bool,
    create_missing: bool,
    keep_retention: bool,
    reuse_offsets: bool,
    offset_gap: int,
    links: bool,
    suppress: str | None,
    verify: str | None,
    manifest: str | None,
    output_format: str,
    processes: int | None,
) -> ExitCode:
    """Write a cluster that boots, as of one moment, from copies of brokers' disks."""
    if verify is not None:
        return _verified(verify, manifest, processes)
    if manifest is not None:
        raise RefusedOptionError("--manifest", "only with --verify")
    if not paths:
        raise OptionError("PATH", "", "the copies of log directories, or --verify DIR")
    if target is None and not is_check:
        raise OptionError("--to", "", "the new directory, or --check for the plan")
    from kafkalog.inspection.erasure.suppression import Suppression
    from kafkalog.questions.restore.planning import RestoreRequest, plan_restore
    from kafkalog.questions.restore.restoring import restored
    from kafkalog.questions.restore.sources import sources_of

    suppression = None if suppress is None else Suppression.of_file("--suppress", suppress)
    sources = sources_of(paths)
    if target is not None:
        _refuse_target(target, sources)
    request = RestoreRequest(
        sources.covered_by_all_ms if as_of is None else as_of,
        _nodes(nodes, replication, sources),
        (sources.best.cluster_id if keep_cluster_id else None) or _new_id(),
        time.time_ns() // 1_000_000,
        replication=replication,
        links=links,
        creates_missing=create_missing,
        reuses_offsets=reuse_offsets,
        offset_gap=offset_gap,
        keeps_retention=keep_retention,
        is_topic_chosen=_choice(topics, topic_pattern),
        is_group_chosen=_choice((), group_pattern),
        latest_topics=latest_topics,
        is_uncut=as_of is None and len(sources.coverage) == 1,
        suppression=suppression,
    )
    _refuse_unknown_topics(topics, latest_topics, sources)
    with _views(processes, sources) as views:
        with progress_bar(sources.size, "planning") as bar:
            found = restored(plan_restore(views, sources, request, bar.update))
        return _ended(views, found, None if is_check else target, output_format, strict=strict)


def _ended(
    views: LocalViews, found: Restored, target: str | None, output_format: str, *, strict: bool
) -> ExitCode:
    from kafkalog.questions.restore.manifest import manifest_of, not_exact
    from kafkalog.questions.restore.report import screen

    inexact = [*not_exact(found)]
    if strict and inexact:
        for line in inexact:
            print_note(line)
        raise LogDirError(
            f"--strict: the result would not be exact, for {len(inexact)} reasons; nothing is "
            "written"
        )
    manifest = manifest_of(found) if target is None else _written(views, found, target)
    if output_format == "json":
        print_text(json.dumps(manifest, indent=1))
    else:
        for line in screen(found, target):
            print_text(line)
    return ExitCode.FINDINGS if inexact else ExitCode.DONE


def _written(views: LocalViews, found: Restored, target: str) -> dict[str, Any]:
    """Write the directory, judge it, and let it appear; return its manifest."""
    from kafkalog.questions.restore.manifest import file_facts, manifest_of
    from kafkalog.questions.restore.restoring import judged, write_manifest, write_restored
    from kafkalog.storage.files.whole_directory import whole_directory

    with whole_directory(target, os.fsync) as scratch:
        with progress_bar(found.plan.bytes_to_write, "writing") as bar:
            write_restored(views, found, scratch, bar.update)
        judged(found, scratch, views.processes)
        with progress_bar(found.plan.bytes_to_write, "checksums") as bar:
            facts = file_facts(views, scratch, bar.update)
        manifest = manifest_of(found, facts)
        write_manifest(manifest, scratch)
        # Thousands of small files: at once is faster than one after the other.
        os.sync()
    return manifest


@contextmanager
def _views(processes: int | None, sources: Sources) -> Iterator[LocalViews]:
    from kafkalog.views.engine import LocalViews
    from kafkalog.views.parallel import processes_for

    yield LocalViews(sources.log_dirs, [], processes_for(sources.size, processes))


def _refuse_target(target: str, sources: Sources) -> None:
    from kafkalog.storage.files.output_files import refuse_existing_directory
    from kafkalog.storage.log_dir.read_directories import refuse_inside

    refuse_inside("--to", target, sources.log_dirs)
    refuse_existing_directory("--to", target)


def _refuse_unknown_topics(
    topics: Sequence[str], latest_topics: Sequence[str], sources: Sources
) -> None:
    known = {row["topic"] for image in sources.images for row in image.tables["topic"].values()} | {
        copy.log.topic or "" for copies in sources.copies.values() for copy in copies
    }
    for option, named in (("--topic", topics), ("--latest-topics", latest_topics)):
        for topic in named:
            if topic not in known:
                raise OptionError(option, topic, f"one of: {', '.join(sorted(known))}")


def _nodes(places: tuple[_Place, ...] | None, replication: int, sources: Sources) -> list[Node]:
    from kafkalog.questions.restore.nodes import Node

    if places is None:
        known = [copy.node_id for copy in sources.metadata if copy.node_id is not None]
        places = (_Place(min(known, default=1), *_DEFAULT_PLACE),)
    if replication > len(places):
        raise OptionError("--replication", replication, f"up to {len(places)}, for as many nodes")
    return [
        Node(*each, "" if len(places) == 1 else f"node-{each.node_id}", _new_id())
        for each in places
    ]


def _choice(names: Sequence[str], pattern: str | None) -> Callable[[str], bool]:
    """Return whether a name is chosen: one of the names, or one in which the pattern is found; all
    without either."""
    if not names and pattern is None:
        return lambda name: True
    found = re.compile(pattern) if pattern is not None else None
    return lambda name: name in names or (found is not None and found.search(name) is not None)


def _new_id() -> str:
    from kafkalog.inspection.metadata.new_directory import new_random_id

    return new_random_id()


def _verified(directory: str, manifest: str | None, processes: int | None) -> ExitCode:
    from kafkalog.questions.restore.manifest import bytes_below, differences, read_manifest
    from kafkalog.questions.restore.restoring import MANIFEST
    from kafkalog.views.engine import LocalViews

    path = manifest or os.path.join(directory, MANIFEST)
    content = read_manifest(path)
    views = LocalViews([directory], [], processes or 1)
    with progress_bar(bytes_below(directory), "checksums") as bar:
        found = [*differences(views, directory, content, bar.update)]
    for line in found:
        print_text(line)
    if not found:
        print_text(f"{directory} is as {path} says: {len(content['files'])} files")
    return ExitCode.FINDINGS if found else ExitCode.DONE
