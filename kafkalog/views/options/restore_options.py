"""The options of `kafkalog restore` and of the job restore."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

from kafkalog.errors import ConflictingOptionsError, RefusedOptionError
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import NODE_ADDRESS, GivenPath, Topic, found_node

_NODE = re.compile(NODE_ADDRESS + r"/(?P<controller>[0-9]{1,5})")


class NodePlace(NamedTuple):
    """A node of the new cluster, as --nodes gives it."""

    node_id: int
    host: str
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """The values of the options, as they were given."""

    as_of: int | None
    strict: bool
    nodes: tuple[NodePlace, ...] | None
    replication: int
    kafka: str | None
    into: str | None
    topics: tuple[str, ...]
    topic_pattern: str | None
    group_pattern: str | None
    latest_topics: tuple[str, ...]
    keep_cluster_id: bool
    create_missing: bool
    keep_retention: bool
    reuse_offsets: bool
    offset_gap: int | None
    links: bool
    hash_inputs: bool
    suppress: str | None
    schema_registry: str | None = None

    def refuse_contradictions(self) -> None:
        """Raise ConflictingOptionsError for what a cluster that exists decides itself, and for a
        gap between offsets that are used again; RefusedOptionError for a registry that nothing is
        decoded by."""
        if self.reuse_offsets and self.offset_gap is not None:
            raise ConflictingOptionsError("--reuse-offsets", "--offset-gap")
        if self.schema_registry is not None and self.suppress is None:
            raise RefusedOptionError("--schema-registry", "only with --suppress")
        given = {
            "--nodes": self.nodes is not None,
            "--replication": self.replication > 1,
            "--kafka": self.kafka is not None,
            "--keep-cluster-id": self.keep_cluster_id,
            "--create-missing": self.create_missing,
            "--keep-retention": self.keep_retention,
        }
        for name, is_given in given.items():
            if self.into is not None and is_given:
                raise ConflictingOptionsError("--into", name)


class _NodesType(click.ParamType[tuple[NodePlace, ...]]):
    name = "nodes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[NodePlace, ...]:
        if isinstance(value, tuple):
            return value
        places = tuple(self._place(each, param, ctx) for each in value.split(","))
        if len({each.node_id for each in places}) < len(places):
            self.fail(f"{value!r} names a node twice", param, ctx)
        return places

    def _place(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> NodePlace:
        found = found_node(_NODE, value, "controller")
        if found is None:
            example = "ID@HOST:PORT/CONTROLLER-PORT, such as 1@host1:9092/9093"
            self.fail(f"{value!r} is not {example}", param, ctx)
        return NodePlace(
            int(found["id"]), found["host"], int(found["port"]), int(found["controller"])
        )


def restore_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, received as `given`."""
    return shared.settings_options(
        RestoreOptions,
        "given",
        shared.as_of_option(
            "Restore the cluster as of this time; by default the last that all copies have"
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Write nothing if the result would not be exact or not whole.",
        ),
        click.option(
            "--nodes",
            metavar="ID@HOST:PORT/CONTROLLER-PORT,...",
            type=_NodesType(),
            help="The nodes of the new cluster, each broker and controller, by default one on "
            "127.0.0.1; of several each gets a directory node-ID below --to.",
        ),
        click.option(
            "--replication",
            metavar="N",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="On how many of the nodes each partition is.",
        ),
        click.option(
            "--kafka",
            metavar="VERSION",
            help="The version of Kafka that will start, such as 4.4: what it cannot open is "
            "refused.",
        ),
        click.option(
            "--into",
            metavar="METADATA_COPY",
            type=GivenPath(),
            help="Partitions for a cluster that exists, with its topic ids, instead of a cluster: "
            "a copy of its metadata.log.dir.",
        ),
        shared.topic_option("Only this topic, beside the coordinators' own; repeatable."),
        shared.topic_pattern_option(),
        shared.group_pattern_option,
        click.option(
            "--latest-topics",
            metavar="TOPIC",
            type=Topic(),
            multiple=True,
            help="Take all records of this topic, later ones too, such as _schemas; repeatable.",
        ),
        click.option(
            "--keep-cluster-id",
            is_flag=True,
            help="Keep the id of the old cluster, instead of a new one that its nodes refuse.",
        ),
        click.option(
            "--create-missing",
            is_flag=True,
            help="Create topics and partitions that no copy has. They are empty.",
        ),
        click.option(
            "--keep-retention",
            is_flag=True,
            help="Keep the retention of topics: a broker can delete old records soon after its "
            "start.",
        ),
        click.option(
            "--reuse-offsets",
            is_flag=True,
            help="Let logs go on where they were cut: what was read beyond it has other records "
            "then.",
        ),
        click.option(
            "--offset-gap",
            metavar="N",
            type=click.IntRange(0, 2**30),
            show_default="1000000",
            help="Leave so many offsets after the end of the copies unused, for records that were "
            "written after these were made.",
        ),
        click.option(
            "--link",
            "links",
            is_flag=True,
            help="Hard links to whole segments instead of copies: nothing may write to the input "
            "then.",
        ),
        click.option(
            "--hash-inputs",
            is_flag=True,
            help="Put size and CRC-32C of every input file on this machine into the manifest: all "
            "of the input is read once more.",
        ),
        shared.suppress_option(
            "Leave out the records of the identifiers in this file, one a line, as `kafkalog erase "
            "--identifiers` has it."
        ),
        click.option(
            "--schema-registry",
            metavar="URL|DIR",
            help="Of --suppress: decode keys and values by the schemas of the registry at this "
            "URL, or of files named by their ids, such as DIR/7.avsc; without it by those in "
            "_schemas, if PATHs have it.",
        ),
    )(function)
