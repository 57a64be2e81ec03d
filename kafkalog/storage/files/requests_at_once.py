"""Read many remote files at a time: each answer takes its latency, and little else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kafkalog.storage.files.uris import is_remote

# An object store answers far more at a time; what threads make of the answers takes turns.
_THREADS = 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def answers(
    function: Callable[[_Item], _Result], items: Sequence[_Item], path_of: Callable[[_Item], str]
) -> list[_Result]:
    """Return the results of `function` for the items, in their order; several at a time if their
    files are remote. The first error ends it."""
    if len(items) < 2 or not any(is_remote(path_of(item)) for item in items):
        return [function(item) for item in items]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="kafkalog-requests") as executor:
        return list(executor.map(function, items))
