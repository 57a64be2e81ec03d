"""What the job that ingests topics is asked for: its arguments, and the same as options."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from kafkalog.errors import OptionError
from kafkalog.spark.jobs.job import argument_time_ms
from kafkalog.spark.jobs.tables.state_arguments import add_source_arguments, named_as_arguments
from kafkalog.spark.jobs.tables.state_sources import found_sources
from kafkalog.storage.files.output_files import refuse_unwritable_file
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.views.options.options import ReadOptions, read_options
from kafkalog.views.planning.state_positions import StateSource

EXAMPLE = """\
/var/lib/kafka/data --output /lake/kafka \\
    --starting-offsets-out /lake/kafka/starting_offsets.json
  python jobs/ingest_topics.py /var/lib/kafka/data --output /lake/kafka \\
    --from-time 2026-11-01T00:00:00Z --until-time 2026-11-02T00:00:00Z
The first adds what is new since its last run; the second writes the records of a day once more."""

_ARGUMENTS = {
    "startingTimestamp": "--from-time",
    "startingOffsets": "--from-offsets",
    "endingTimestamp": "--until-time",
    "endingOffsets": "--until-offsets",
    "subscribe": "--subscribe",
}
_OFFSETS = 'JSON such as {"orders":{"0":50}} with all partitions that are read'


def with_ingest_arguments(parser: ArgumentParser) -> ArgumentParser:
    """The arguments with: which topics, from where and up to where, and what else to write."""
    add_source_arguments(parser)
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-time",
        metavar="TIME",
        type=argument_time_ms,
        help="from the first record of each partition that is as late, in place of what the table "
        "has from there on; without it, and without --from-offsets, from where the table ends",
    )
    start.add_argument(
        "--from-offsets", metavar="OFFSETS", help=f"the same from these offsets: {_OFFSETS}"
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument(
        "--until-time",
        metavar="TIME",
        type=argument_time_ms,
        help="up to the first record of each partition that is as late, not including it, such as "
        "the end of a schedule's interval (default: all that is there)",
    )
    end.add_argument(
        "--until-offsets", metavar="OFFSETS", help=f"the same up to these offsets: {_OFFSETS}"
    )
    parser.add_argument(
        "--full-refresh",
        action="store_true",
        help="write the partitions that are read anew, from their first records on",
    )
    parser.add_argument(
        "--starting-offsets-out",
        metavar="FILE",
        help="write where the table ends as startingOffsets of Spark's Kafka source, which goes on "
        "there with the live cluster",
    )
    return parser


def is_bounded(args: Namespace) -> bool:
    """Whether a start is asked for."""
    return args.from_time is not None or args.from_offsets is not None


def ingest_sources(args: Namespace, inputs: Sequence[str]) -> list[StateSource]:
    """The partitions to read, with the asked offsets. Raises OptionError naming the argument, and
    what `found_sources` raises."""
    if args.starting_offsets_out is not None:
        refuse_inside("--starting-offsets-out", args.starting_offsets_out, inputs)
        refuse_unwritable_file("--starting-offsets-out", args.starting_offsets_out, args.output)
    if args.full_refresh and is_bounded(args):
        raise OptionError("--full-refresh", "a start", "either of them")
    with named_as_arguments(_ARGUMENTS):
        return found_sources(_options(args, inputs))


def _options(args: Namespace, inputs: Sequence[str]) -> ReadOptions:
    times = {"startingTimestamp": args.from_time, "endingTimestamp": args.until_time}
    given = {
        "paths": json.dumps(list(inputs)),
        "mode": args.mode,
        "isolationLevel": args.isolation_level,
        "stopAt": args.stop_at,
        "startingOffsetsByTimestampStrategy": "latest",
        "subscribe": args.subscribe,
        "startingOffsets": args.from_offsets,
        "endingOffsets": args.until_offsets,
        **{name: None if time_ms is None else str(time_ms) for name, time_ms in times.items()},
    }
    return read_options({name: value for name, value in given.items() if value is not None})
