"""Says which bytes of a damaged file are damaged by comparing it with the file before.

Knows nothing of kafkalog: batches of the sound file are told apart by their length fields alone,
and damage is one stretch between the longest common beginning and the longest common end.
"""

from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class Expectation:
    """Spans of the damaged file: what was changed, and batches that are whole."""

    damaged: Span
    intact: list[Span]


def batch_spans(sound: bytes) -> list[Span]:
    """Where the batches of a sound file lie."""
    spans: list[Span] = []
    position = 0
    while position < len(sound):
        end = position + 12 + int.from_bytes(sound[position + 8 : position + 12], "big")
        spans.append((position, end))
        position = end
    assert position == len(sound)
    return spans


def expectation(sound: bytes, damaged: bytes) -> Expectation:
    """What was done to `sound`, and which batches of it survived."""
    spans = batch_spans(sound)
    beginning = _common_beginning(sound, damaged)
    most = min(len(sound), len(damaged)) - beginning
    end = min(_common_beginning(sound[::-1], damaged[::-1]), most)
    shift = len(damaged) - len(sound)
    borders = {0, *(stop for _, stop in spans)}
    # Of the places that an inserted stretch may have, the one between two batches.
    while shift > 0 and beginning and beginning not in borders:
        if damaged[beginning - 1] != damaged[len(damaged) - end - 1]:
            break
        beginning, end = beginning - 1, end + 1
    intact = [span for span in spans if span[1] <= beginning]
    intact += [(start + shift, stop + shift) for start, stop in spans if start >= len(sound) - end]
    if len(damaged) == beginning:  # cut short: what is left of the last batch is damaged
        last = max((stop for _, stop in intact), default=0)
        return Expectation((last, len(damaged)), intact)
    return Expectation((beginning, len(damaged) - end), intact)


def _common_beginning(first: bytes, second: bytes) -> int:
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def overlaps(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def is_covered(span: Span, reported: list[Span]) -> bool:
    """Whether every byte of the span lies in a reported range."""
    position = span[0]
    for start, end in sorted(reported):
        if start <= position < end:
            position = end
    return position >= span[1]
