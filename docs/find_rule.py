"""Prints a rule and each place that cites it: `make rule RULE=F68`.

`git grep -w F68` misses the files that cite a range of rules, such as F60 to F76.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The rule itself is found first.
_FOLDERS = ("docs", "kafkalog", "jobs", "tests", "benchmarks")
_RANGE = re.compile(r"\bF(\d+)\s*(?:to|–)\s*F(\d+)\b")


def cites(line: str, number: int) -> bool:
    """Return whether a line names the rule, by itself or within a range such as F1 to F4."""
    if re.search(rf"\bF{number}\b", line):
        return True
    return any(int(first) <= number <= int(last) for first, last in _RANGE.findall(line))


def places(number: int) -> Iterator[str]:
    """Yield `file:line: text` of the rule and of each place that cites it, code before tests."""
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md") and path != Path(__file__):
                name = path.relative_to(ROOT).as_posix()
                for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                    if cites(line, number):
                        yield f"{name}:{at}: {line.strip()}"


def main() -> int:
    """Print the places of the rule that the command line names."""
    rule = "".join(sys.argv[1:])
    found = re.fullmatch(r"F?([1-9][0-9]*)", rule)
    lines = list(places(int(found[1]))) if found else []
    sys.stdout.writelines(f"{line}\n" for line in lines)
    if not lines:
        sys.stderr.write(f"no rule {rule!r}: name one by its number, as in make rule RULE=F68\n")
    return 0 if lines else 2


if __name__ == "__main__":
    sys.exit(main())
