"""Tables in Markdown, and the line that says on what machine they were made."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 2) -> str:
    """A Markdown table whose columns line up; all but the first `left` are set to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def text(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if i < left else f"{'-' * (width - 1)}:" for i, width in enumerate(widths)]
    return "\n".join([text(lines[0]), text(rule), *(text(line) for line in lines[1:])])


def machine(packages: Sequence[str], used: str = "one of them") -> str:
    """Processor, system, Python and the versions of the libraries."""
    processors = os.cpu_count() or 0
    parts = [
        f"{_processor()}, {processors} processors, this run on {used}",
        platform.system(),
        f"{platform.python_implementation()} {platform.python_version()}",
        *(f"{package} {_version(package)}" for package in packages),
    ]
    return "; ".join(parts)


def load() -> str:
    """How busy the machine is with other things."""
    return f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""


def _processor() -> str:
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def inputs_argument(
    parser: argparse.ArgumentParser,
    place: Path = Path("build/benchmarks"),
    kept: str = "inputs are",
) -> None:
    """`--inputs`: where what takes long to make is kept for the next time."""
    parser.add_argument(
        "--inputs",
        type=Path,
        default=place,
        metavar="DIR",
        help=f"where {kept} kept for the next time (default: %(default)s)",
    )


def progress(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)
