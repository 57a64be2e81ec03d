"""What the job of state is asked for: its arguments, and the same as options of the source."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafkalog.errors import OptionError
from kafkalog.spark.jobs.job import argument_time_ms
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.views.options.options import ReadOptions, read_options
from kafkalog.views.planning.state_positions import StateSettings

EXAMPLE = """\
/var/lib/kafka/data --subscribe orders --output /tmp/state
  python jobs/reconstruct_state.py /var/lib/kafka/data --subscribe orders --output /tmp/noon \\
    --as-of-time 2026-11-21T12:00:00Z
The first, run again, reads what is new since; the second is the state of that moment."""

_AS_OF_OFFSET = "--as-of-offset"
_ARGUMENTS = {
    "endingOffsets": _AS_OF_OFFSET,
    "endingTimestamp": "--as-of-time",
    "subscribe": "--subscribe",
}


def add_source_arguments(parser: ArgumentParser) -> None:
    """Which topics, and which of their records."""
    parser.add_argument(
        "--subscribe",
        metavar="TOPICS",
        help="topics with commas; '*' is all, internal ones included (default: all but those)",
    )
    parser.add_argument(
        "--isolation-level",
        choices=("read_committed", "read_uncommitted"),
        default="read_committed",
        help="read_committed leaves out aborted transactions and stops where the first open one "
        "begins (default: read_committed)",
    )
    parser.add_argument(
        "--stop-at",
        choices=[rule.value for rule in EndRule],
        default=EndRule.HIGH_WATERMARK.value,
        help="where a log ends: highWatermark, known after a clean shutdown, or else the log end; "
        "or logEnd (default: highWatermark)",
    )


def with_state_arguments(parser: ArgumentParser) -> ArgumentParser:
    """The arguments with: which topics, up to where, what becomes of the table that is there."""
    add_source_arguments(parser)
    moment = parser.add_mutually_exclusive_group()
    moment.add_argument(
        _AS_OF_OFFSET,
        metavar="OFFSETS",
        help='the state before these offsets: {"orders":{"0":50,"1":-1}}, -1 for the end; or one '
        "number where one partition is read",
    )
    moment.add_argument(
        "--as-of-time",
        metavar="TIME",
        type=argument_time_ms,
        help="the state before the first record of each partition that is as late: such as "
        "2026-11-21T12:00:00Z, or milliseconds since 1970",
    )
    parser.add_argument(
        "--keep-tombstones",
        action="store_true",
        help="keep a row of each deleted key, with the offset and the time of the delete",
    )
    parser.add_argument(
        "--full-refresh",
        action="store_true",
        help="read everything again and replace the rows of the partitions that are read, instead "
        "of reading what is new since the last run: also after damage was mended that --mode "
        "PERMISSIVE had passed over",
    )
    return parser


def state_settings(args: Namespace) -> StateSettings:
    """What all runs on one table must agree in."""
    return StateSettings(args.isolation_level, args.keep_tombstones)


@contextmanager
def named_as_arguments(arguments: Mapping[str, str] = _ARGUMENTS) -> Iterator[None]:
    """Let an OptionError name the argument that an option came from."""
    try:
        yield
    except OptionError as error:
        name = arguments.get(error.name, error.name)
        raise OptionError(name, error.value, error.allowed) from error


@named_as_arguments()
def state_options(args: Namespace, inputs: Sequence[str]) -> ReadOptions:
    """The arguments as options of view `records`. Raises OptionError."""
    given = {
        "paths": json.dumps(list(inputs)),
        "mode": args.mode,
        "isolationLevel": args.isolation_level,
        "stopAt": args.stop_at,
    }
    if args.subscribe is not None:
        given["subscribe"] = args.subscribe
    if args.as_of_time is not None:
        given["endingTimestamp"] = str(args.as_of_time)
    if args.as_of_offset is not None:
        given["endingOffsets"] = _by_partition(args.as_of_offset, read_options(given))
    return read_options(given)


def _by_partition(offsets: str, options: ReadOptions) -> str:
    if not offsets.strip().isdigit():
        return offsets
    logs = options.topics.chosen(find_partitions(options.paths, strict=False))
    names = sorted({log.name for log in logs})
    if len(names) != 1 or logs[0].topic_partition is None:
        allowed = f'JSON such as {{"topic":{{"0":{offsets}}}}} with all of {", ".join(names)}'
        raise OptionError(_AS_OF_OFFSET, offsets, allowed)
    topic, partition = logs[0].topic_partition
    return json.dumps({topic: {str(partition): int(offsets)}})
