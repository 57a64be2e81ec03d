"""What a job takes for a TiB and a PB, from the figures of `docs/benchmarks.md`:
`python -m benchmarks.sizing`.

Prices and machines are options. `--write` puts the tables into `docs/operations.md`, for the
default ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.report import table

_DOCS = Path(__file__).parents[1] / "docs"
BENCHMARKS, OPERATIONS = _DOCS / "benchmarks.md", _DOCS / "operations.md"
_SECTION = "## All jobs"
# How often a job reads its input.
_PASSES = {"validate-checksums": 1, "ingest-topics": 1, "reconstruct-state": 2, "consumer-lag": 1}
_TIB, _PB, _MB = 2**40, 10**15, 10**6
# A GiB that is read whole: 8 MiB a request, after smaller ones, and three of its size.
_REQUESTS_PER_GIB = 1024 // 8 + 7 + 3
# Of a segment of 1 GiB: the log, two indexes and a producer snapshot.
_OBJECTS_PER_GIB = 4
_MACHINES = (1, 10, 100)
_COSTS = ("job", "processor hours a TiB", "a PB", "peak GiB", "GET a TiB", "price a TiB", "a PB ")
_TIMES = ("job", "hours a PB", *(f"on {count}" for count in _MACHINES[1:]), "limit")


@dataclass(frozen=True)
class Figures:
    """What a job took for so many bytes of its input."""

    job: str
    size: int
    processor_seconds: float
    peak_mib: float

    @property
    def hours_per_byte(self) -> float:
        return self.processor_seconds / self.size / 3600


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or write them."""
    options = _options(arguments)
    tables = _tables(options)
    if options.write:
        OPERATIONS.write_text(_replaced(OPERATIONS.read_text(), tables))
    else:
        print("\n\n".join(tables))
    return 0


def default_tables() -> list[str]:
    """Return the tables for the default prices and machines."""
    return _tables(_options([]))


def _tables(options: argparse.Namespace) -> list[str]:
    return [_costs(options), _times(options)]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizing", description=__doc__)
    for name, default, meaning in (
        ("--core-hour", 0.05, "price of a processor for an hour"),
        ("--get", 0.0004, "price of 1,000 GET or HEAD requests"),
        ("--list", 0.005, "price of 1,000 LIST requests"),
        ("--cores", 16, "processors of a machine"),
        ("--gigabits", 10, "that a machine reads in a second"),
    ):
        parser.add_argument(
            name, type=float, default=default, help=f"{meaning} (default: %(default)s)"
        )
    parser.add_argument("--write", action="store_true", help=f"write to {OPERATIONS.name}")
    return parser.parse_args(arguments)


def measured(page: str) -> list[Figures]:
    """Return the figures of the jobs in the table of all jobs."""
    section = page.partition(f"\n{_SECTION}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return list(_figures(head, rows))


def _figures(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Figures]:
    size = 0
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        if cells["input"]:
            size = int(_number(cells["input"].rpartition(", ")[2].removesuffix(" MB")) * _MB)
        if cells["what"] in _PASSES:
            busy, peak = _number(cells["processor s"]), _number(cells["peak MiB"])
            yield Figures(cells["what"], size, busy, peak)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _costs(options: argparse.Namespace) -> str:
    rows = []
    for each in measured(BENCHMARKS.read_text()):
        gets = _REQUESTS_PER_GIB * _PASSES[each.job] * _TIB / 2**30
        listings = _OBJECTS_PER_GIB / 1000 * _TIB / 2**30
        requests = (gets * options.get + listings * options.list) / 1000
        price = each.hours_per_byte * _TIB * options.core_hour + requests
        rows.append(
            (
                each.job,
                f"{each.hours_per_byte * _TIB:.1f}",
                f"{each.hours_per_byte * _PB:,.0f}",
                f"{each.peak_mib / 1024:.1f}",
                f"{gets:,.0f}",
                f"{price:.2f}",
                f"{price * _PB / _TIB:,.0f}",
            )
        )
    return table(_COSTS, rows, left=1)


def _times(options: argparse.Namespace) -> str:
    rows = []
    for each in measured(BENCHMARKS.read_text()):
        by_processors = each.hours_per_byte * _PB / options.cores
        by_network = _PASSES[each.job] * _PB * 8 / (options.gigabits * 1e9) / 3600
        hours = max(by_processors, by_network)
        limit = "processors" if by_processors > by_network else "network"
        rows.append((each.job, *(f"{hours / count:,.1f}" for count in _MACHINES), limit))
    return table(_TIMES, rows, left=1)


def _replaced(page: str, tables: Sequence[str]) -> str:
    """Return the page with its tables of the same first two cells replaced."""
    lines = page.splitlines()
    for text in tables:
        start = next(n for n, line in enumerate(lines) if _cells(line) == _cells(text))
        end = next(n for n in range(start, len(lines)) if not lines[n].startswith("|"))
        lines[start:end] = text.splitlines()
    return "\n".join([*lines, ""])


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.partition("\n")[0].split("|")[1:3]]


if __name__ == "__main__":
    raise SystemExit(main())
