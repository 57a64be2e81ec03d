"""Options that say how a broker and its topics are set up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES

_Function = Callable[..., Any]


def index_interval_option(meaning: str) -> Callable[[_Function], _Function]:
    """The option --index-interval-bytes, given to the command as `index_interval_bytes`."""
    return click.option(
        "--index-interval-bytes",
        metavar="N",
        type=click.IntRange(min=0),
        default=INDEX_INTERVAL_BYTES,
        show_default=True,
        help=f"index.interval.bytes of {meaning}.",
    )


def config_options(function: _Function) -> _Function:
    """The options --server-properties and --topic-config, given to the command as
    `server_properties` and `topic_config`."""
    server = click.option(
        "--server-properties",
        metavar="FILE",
        help="The broker's settings, as it is started with; what they do not name is Kafka's "
        "default then.",
    )
    topics = click.option(
        "--topic-config",
        metavar="FILE",
        help='Settings that topics have of their own: {"orders": {"retention.ms": "3600000"}}.',
    )
    return server(topics(function))
