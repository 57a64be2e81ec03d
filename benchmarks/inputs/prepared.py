"""The segments to measure with: a Java producer's, or else those of kafkalog's own writer."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.inputs.broker_inputs import BrokerMissingError, produced
from benchmarks.inputs.generated import generated
from benchmarks.inputs.wanted import BROKER, GENERATED, Input, Wanted


def prepare(wanted: Wanted, origin: str | None, say: Callable[[str], None]) -> list[Input]:
    """The files, made unless they exist: by `origin`, or by whichever of the two is possible."""
    wanted.directory.mkdir(parents=True, exist_ok=True)
    if origin == GENERATED:
        return generated(wanted, say)

    try:
        return produced(wanted, say)
    except BrokerMissingError as error:
        if origin == BROKER:
            raise
        say(f"no real broker here ({error}); segments of kafkalog's writer instead")
        return generated(wanted, say)
