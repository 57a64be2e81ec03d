"""`kafkalog restore`: a cluster that boots, as of one moment, from copies of brokers' disks."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.terminal import print_text
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.views.options.restore_options import RestoreOptions, restore_options
from kafkalog.views.progress import progress_bar

if TYPE_CHECKING:
    from kafkalog.questions.restore.sources import Sources
    from kafkalog.views.engine import LocalViews

_EPILOG = """\
\b
PATH is a copy of a log directory of a node, the folder of tiered storage, or a glob of these: local
paths, or URIs as in s3://bucket/folder. Give those of all nodes, and metadata.log.dir where it is
another one; see docs/restore.md.

The copies can be of different seconds: each partition is cut at the moment of --as-of. Without it
that is the last moment that all copies cover. The input is only read. The new directory appears
when it is whole, and after `kafkalog recover` has found nothing that a broker would drop from it.

\b
Examples:
  kafkalog restore /snap/b1 /snap/b2 /snap/b3 --as-of 2026-11-20T14:29:00Z --check
  kafkalog restore /snap/b1 /snap/b2 /snap/b3 --as-of 2026-11-20T14:29:00Z --to /restore
  kafkalog restore '/snap/*' --to /restore --replication 3 \\
      --nodes 1@host1:9092/9093,2@host2:9092/9093,3@host3:9092/9093
  kafkalog restore s3://tier/kafka /snap/b1 --to /restore
  kafkalog restore '/snap/*' --topic orders --into /snap/other/metadata --to /restore
  kafkalog restore --verify /restore
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--to", "target", metavar="DIR", type=GivenPath(), help="The new directory; it must not exist."
)
@click.option("--check", "is_check", is_flag=True, help="Show the plan, and write nothing.")
@restore_options
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
    is_check: bool,
    given: RestoreOptions,
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
    from kafkalog.questions.restore.manifest import manifest_lines, manifest_of, written_lines
    from kafkalog.questions.restore.runs import Report, Wanted, planned, refuse_target, written
    from kafkalog.questions.restore.sources import sources_of

    wanted = Wanted.of(given, target)
    sources = sources_of(paths)
    if target is not None:
        refuse_target(target, sources)
    views = _views(processes, sources)
    given_now = views, sources, wanted, time.time_ns() // 1_000_000
    if target is None or is_check:
        found = planned(*given_now, progress_bar)
        report, content = Report.of(found, None), manifest_lines(manifest_of(found))
    else:
        report = written(*given_now, target, progress_bar)
        content = written_lines(target)
    for line in content if output_format == "json" else report.lines:
        print_text(line)
    return ExitCode.DONE if report.is_exact else ExitCode.FINDINGS


def _views(processes: int | None, sources: Sources) -> LocalViews:
    from kafkalog.views.engine import LocalViews
    from kafkalog.views.parallel import processes_for

    return LocalViews(sources.log_dirs, [], processes_for(sources.size, processes))


def _verified(directory: str, manifest: str | None, processes: int | None) -> ExitCode:
    from kafkalog.questions.restore.manifest import (
        MANIFEST,
        bytes_below,
        differences,
        read_manifest,
    )
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
