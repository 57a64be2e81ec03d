"""How the source is divided, and how far an answer's values travel: `python -m benchmarks.house`.

It counts lines, files and imports of `kafkalog` and `jobs`, and lines by subject: by folder. And it
walks: it runs commands on
`examples/` with one process and follows all calls, from the command to the last byte that it reads.
A call counts once for each pair of functions. `--root DIR` measures another checkout.

- stays: calls within a folder;
- moves: calls into another folder;
- climbs: those moves that go up, into a package above the caller's (docs/architecture.md).
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

_ROOT = Path(__file__).resolve().parent.parent
_WALKS = {
    "ls": ["ls", "examples/shop-week"],
    "check": ["check", "examples/shop-week"],
    "recover": ["recover", "examples/shop-week"],
    "txns": ["txns", "examples/log-dirs/kafka-4.4"],
    "groups": ["groups", "examples/shop-week"],
    "dump": ["dump", "examples/shop-week/orders-0", "--deep"],
    "export": ["export", "examples/shop-week", "--topic", "orders", "--output-dir", "OUTPUT"],
    "report": ["report", "examples/shop-week", "--output-dir", "OUTPUT"],
}
# Runs in a process of its own, in the checkout that is measured.
_TRACE = """
import io, json, os, sys, contextlib
root, arguments = sys.argv[1], sys.argv[2:]
sys.path.insert(0, root)
ORDER = ["wire", "format", "storage", "messages", "coordination", "zookeeper", "columns",
         "inspection", "views", "lake", "questions", "report", "command_line"]
from kafkalog.command_line import main
home = os.path.join(root, "kafkalog") + os.sep
calls, functions, files = {"stays": 0, "moves": 0, "climbs": 0}, set(), set()
def place(code):
    name = code.co_filename
    return name[len(home):] if name.startswith(home) else None
def floor(file):
    package = file.split(os.sep)[0]
    return ORDER.index(package) if package in ORDER else -1
def follow(frame, event, _):
    if event != "call" or (own := place(frame.f_code)) is None:
        return
    if "<" in frame.f_code.co_name:
        return
    caller = frame.f_back
    while caller is not None and place(caller.f_code) is None:
        caller = caller.f_back
    if caller is None or (frame.f_code, caller.f_code) in functions:
        return
    functions.add((frame.f_code, caller.f_code)); files.add(own)
    origin = place(caller.f_code)
    if os.path.dirname(origin) == os.path.dirname(own):
        calls["stays"] += 1
        return
    calls["moves"] += 1
    if floor(own) > floor(origin) >= 0:
        calls["climbs"] += 1
sys.argv = ["kafkalog", *arguments]
shown = io.TextIOWrapper(io.BytesIO())  # dump writes bytes
with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
    sys.setprofile(follow)
    try:
        main.kafkalog(arguments, standalone_mode=False)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
print(json.dumps({**calls, "functions": len({code for code, _ in functions}), "files": len(files)}))
"""


def sources(root: Path) -> Iterator[Path]:
    """The Python files of the packages."""
    for package in ("kafkalog", "jobs"):
        yield from sorted((root / package).rglob("*.py"))


def import_lines(text: str) -> int:
    """How many lines the imports of a module take, those within functions too."""
    found = ast.walk(ast.parse(text))
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in found
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def code_lines(text: str) -> int:
    """How many lines are neither blank nor comments."""
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def main() -> None:
    """Print the figures of one checkout."""
    parser = argparse.ArgumentParser(description="Measure how the source is divided.")
    parser.add_argument("--root", type=Path, default=_ROOT, help="the checkout that is measured")
    root = parser.parse_args().root.resolve()
    texts = {path: path.read_text() for path in sources(root)}
    lines = sum(len(text.splitlines()) for text in texts.values())
    code, imports = (sum(map(count, texts.values())) for count in (code_lines, import_lines))
    small = sum(
        len(text.splitlines()) < 40 for path, text in texts.items() if path.name != "__init__.py"
    )
    print(f"{lines:,} lines in {len(texts)} files, {lines / len(texts):.0f} a file")
    print(f"imports: {imports:,} lines, {imports / code:.1%} of {code:,} lines of code")
    print(f"{small} files below 40 lines, without __init__.py")
    print(*subjects(root, texts), sep="\n")
    print(f"{'walk':10} {'stays':>6} {'moves':>6} {'climbs':>7} {'functions':>10} {'files':>6}")
    for name, arguments in _WALKS.items():
        print(walked(root, name, arguments))


def subjects(root: Path, texts: Mapping[Path, str]) -> Iterator[str]:
    """The lines, the lines of code and the share of imports of each folder of a package, its
    subject, the largest first."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        parts = path.relative_to(root).parts[:-1]
        folders["/".join(parts[1:3]) if len(parts) > 1 else parts[0]].append(text)
    counts = {
        name: [sum(map(count, found)) for count in (_lines, code_lines, import_lines)]
        for name, found in folders.items()
    }
    for name, (lines, code, imports) in sorted(counts.items(), key=lambda each: -each[1][0]):
        yield f"{name:34} {lines:7,} lines {code:7,} of code {imports / max(code, 1):6.1%} imports"


def _lines(text: str) -> int:
    return len(text.splitlines())


def walked(root: Path, name: str, arguments: list[str]) -> str:
    """The line about one command."""
    with TemporaryDirectory() as folder:
        given = [each.replace("OUTPUT", f"{folder}/output") for each in arguments]
        one = () if name == "dump" else ("--processes", "1")  # dump reads by itself
        command = [sys.executable, "-c", _TRACE, str(root), *given, *one]
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    return (
        f"{name:10} {found['stays']:6} {found['moves']:6} {found['climbs']:7} "
        f"{found['functions']:10} {found['files']:6}"
    )


if __name__ == "__main__":
    main()
