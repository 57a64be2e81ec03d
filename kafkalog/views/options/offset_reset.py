"""auto.offset.reset of the consumers that a question is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import click

from kafkalog.views.options.click_options import Decorator
from kafkalog.words import duration_text, given_duration_ms

EARLIEST, LATEST, NONE = "earliest", "latest", "none"
_POLICIES = (EARLIEST, LATEST, NONE)
_BY_DURATION = "by_duration:"
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000)


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """auto.offset.reset: earliest, latest, none, or by a duration."""

    policy: str = LATEST
    duration_ms: int | None = None

    def __str__(self) -> str:
        if self.duration_ms is None:
            return self.policy
        return f"by_duration of {duration_text(self.duration_ms)}"


class OffsetResetValue(click.ParamType["OffsetReset"]):
    """auto.offset.reset of a consumer: earliest, latest, none, or by_duration: and a duration as
    Java writes it, such as PT1H30M, or as kafkalog does, such as 90m."""

    name = "reset"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> OffsetReset:
        if isinstance(value, OffsetReset):
            return value
        if value in _POLICIES:
            return OffsetReset(value)
        length_ms = _duration_ms(value.removeprefix(_BY_DURATION))
        if not value.startswith(_BY_DURATION) or length_ms is None:
            allowed = f"{', '.join(_POLICIES)}, or {_BY_DURATION}DURATION such as PT1H or 1h"
            self.fail(f"{value!r} is none of {allowed}", param, ctx)
        return OffsetReset(_BY_DURATION, length_ms)


def _duration_ms(text: str) -> int | None:
    found = _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return given_duration_ms(text)
    parts = zip(found.groups(), _UNITS_MS, strict=True)
    return sum(int(number or 0) * unit for number, unit in parts)


def auto_offset_reset_option(meaning: str) -> Decorator:
    """Add --auto-offset-reset, received as `reset`; the meaning goes before its values."""
    return click.option(
        "--auto-offset-reset",
        "reset",
        type=OffsetResetValue(),
        metavar="RESET",
        default=LATEST,
        show_default=True,
        help=f"{meaning}: earliest, latest, none, or by_duration:DURATION.",
    )
