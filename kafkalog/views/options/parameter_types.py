"""Types of the values of options, as click converts and refuses them."""

from __future__ import annotations

import os
import re
import time
from typing import Any, NamedTuple

import click

from kafkalog.errors import RefusedOptionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.words import DURATIONS_ALLOWED, given_duration_ms, given_time_ms, printable_lines

_OFFSETS = re.compile(
    r"(?:(?P<place>[^=]*)=)?(?P<first>[0-9]{0,19})(?P<colon>:?)(?P<end>[0-9]{0,19})"
)
# A node of a cluster and where it listens: a name, or an IPv6 address in brackets.
NODE_ADDRESS = r"(?P<id>[0-9]{1,9})@(?P<host>[^\s:/@]+|\[[0-9a-fA-F:]+\]):(?P<port>[0-9]{1,5})"
_LARGEST_PORT = 2**16 - 1
RETENTION_SETTINGS = (
    *("retention.ms", "retention.bytes", "cleanup.policy"),
    *("local.retention.ms", "local.retention.bytes"),
)
_UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


# What rows are written as to a file whose name ends so.
_FORMATS_BY_ENDING = {
    ".json": "json",
    ".jsonl": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".txt": "text",
    "": "text",
}


def format_of_file(output: str | None) -> str:
    """Return the format of rows by the ending of the file that --output names: text without an
    ending or without a file. Raises OptionError for an unknown ending."""
    ending = os.path.splitext(output or "")[1].lower()
    if ending not in _FORMATS_BY_ENDING:
        reason = "does not end in .json, .jsonl, .csv, .parquet or .txt: add --format"
        raise RefusedOptionError("--output", f"{output!r} {reason}")
    return _FORMATS_BY_ENDING[ending]


class GivenOffsets(NamedTuple):
    """The value of `--offsets`: from `first` up to, not including, `end`, None for either side that
    is empty; of one partition, or of every partition where `topic_partition` is None."""

    topic_partition: TopicPartition | None
    first: int | None
    end: int | None


class PartitionOffset(NamedTuple):
    """The value of `--as-of-offset`: an offset of one partition, or of the only one that is read
    where `topic_partition` is None; -1 is the end."""

    topic_partition: TopicPartition | None
    offset: int


class Time(click.ParamType[int]):
    """A time, in milliseconds since 1970; it can be relative to the present."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return given_time_ms(value, _warn, time.time_ns() // 1_000_000)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Duration(click.ParamType[int]):
    """A duration such as 30s, 5m, 2h or 1d, in milliseconds: `least_ms` or more."""

    name = "duration"

    def __init__(self, least_ms: int = 0) -> None:
        self._least_ms = least_ms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        length_ms = given_duration_ms(value)
        if length_ms is None:
            self.fail(f"{value!r} is not a duration: {DURATIONS_ALLOWED}", param, ctx)
        if length_ms < self._least_ms:
            self.fail(f"{value!r} is too short: {self._least_ms}ms or longer", param, ctx)
        return length_ms


class GivenPath(click.Path):
    """A path that is not empty: that would mean the current directory. In an environment variable
    commas separate paths, as in Kafka's `log.dirs`."""

    def split_envvar_value(self, rv: str) -> list[str]:
        return [path.strip() for path in rv.split(",") if path.strip()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("an empty path, such as of a variable that is not set", param, ctx)
        return super().convert(value, param, ctx)


class Pattern(click.ParamType[str]):
    """A regular expression, as text."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is not a valid regular expression: {error}", param, ctx)
        return str(value)


class Topic(click.ParamType[str]):
    """A topic by its exact name."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value or "," in value:
            self.fail(f"{value!r} is not the name of a topic: repeat --topic for each", param, ctx)
        return str(value)


class Offsets(click.ParamType[GivenOffsets]):
    """`FROM:UNTIL`, `FROM:`, `:UNTIL` or one offset, after `TOPIC-PARTITION=` or alone."""

    name = "offsets"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenOffsets:
        if isinstance(value, GivenOffsets):
            return value
        found = _OFFSETS.fullmatch(value)
        is_whole = found is not None and bool(found["place"] and found["colon"])
        if found is None or not (found["first"] or found["end"] or is_whole):
            allowed = "FROM:UNTIL, FROM:, :UNTIL or one offset, or TOPIC-PARTITION= and one of them"
            self.fail(f"{value!r} is not {allowed}", param, ctx)
        first = int(found["first"]) if found["first"] else None
        end = int(found["end"]) if found["end"] else None
        if first is not None and not found["colon"]:
            end = first + 1
        place = None if found["place"] is None else topic_partition(found["place"])
        if place is None and found["place"] is not None:
            self.fail(f"{value!r} does not begin with TOPIC-PARTITION=, as orders-0=", param, ctx)
        # Of several partitions one can have no offsets to read.
        least = 1 if place is None else 0
        if (LARGEST_OFFSET if end is None else end) - (first or 0) < least:
            self.fail(f"{value!r}: FROM is not below UNTIL, which is not included", param, ctx)
        if end is not None and end > LARGEST_OFFSET:
            self.fail(f"{value!r}: UNTIL is not at most {LARGEST_OFFSET}", param, ctx)
        return GivenOffsets(place, first, end)


class OffsetOfPartition(click.ParamType[PartitionOffset]):
    """An offset, after `TOPIC-PARTITION=` or alone."""

    name = "offset"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> PartitionOffset:
        if isinstance(value, PartitionOffset):
            return value
        place, is_placed, offset = value.rpartition("=")
        partition = topic_partition(place) if is_placed else None
        if not re.fullmatch("-1|[0-9]{1,19}", offset) or (is_placed and partition is None):
            self.fail(f"{value!r} is not TOPIC-PARTITION=OFFSET, such as orders-0=50", param, ctx)
        return PartitionOffset(partition, int(offset))


def topic_partition(text: str) -> TopicPartition | None:
    """Return the topic and the partition of `orders-0`, None for another text."""
    found = re.fullmatch(r"(.+)-([0-9]{1,9})", text)
    return None if found is None else (found[1], int(found[2]))


def _warn(message: str) -> None:
    click.echo(printable_lines(message), err=True)


class TopicSetting(click.ParamType[tuple[str, str]]):
    """A setting of topics that limits what they keep, as its name and its value: of a time in
    milliseconds, of a size in bytes."""

    name = "setting"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        setting, is_given, text = value.partition("=")
        if setting not in RETENTION_SETTINGS or not is_given:
            allowed = ", ".join(RETENTION_SETTINGS)
            self.fail(f"{value!r} is not NAME=VALUE with one of {allowed}", param, ctx)
        is_number = re.fullmatch(r"-?[0-9]+", text.strip()) is not None
        if setting.endswith(".ms") and not is_number:
            text = str(Duration().convert(text, param, ctx))
        elif setting.endswith(".bytes") and not is_number:
            text = str(Size().convert(text, param, ctx))
        return setting, text


class Size(click.ParamType[int]):
    """A number of bytes, with a unit or without."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([1-9][0-9]{0,12}) ?([kmg]ib)?", value.strip().lower())
        if found is None:
            self.fail(f"{value!r} is not a size, such as 256MiB or 1GiB", param, ctx)
        return int(found[1]) * _UNITS[found[2] or ""]


def found_node(pattern: re.Pattern[str], value: str, *ports: str) -> re.Match[str] | None:
    """Return what a value says by a pattern that begins with NODE_ADDRESS; None if it says
    something else, or if its port or one of the other `ports` is not one."""
    found = pattern.fullmatch(value)
    is_right = found and all(0 < int(found[each]) <= _LARGEST_PORT for each in ("port", *ports))
    return found if is_right else None
