"""Data files of the project: inside the package in a wheel, beside it in the source tree."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def resource(folder: str, *names: str) -> Traversable:
    """Return a file or folder below a top-level folder of the project: `schemas`, `conf` or
    `jobs`."""
    packaged = files("kafkalog").joinpath(folder)
    place: Traversable = packaged if packaged.is_dir() else Path(__file__).parents[1] / folder
    for name in names:
        place = place.joinpath(name)
    return place
