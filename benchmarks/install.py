"""From nothing to the first answer: `make dist`, then `python -m benchmarks.install`.

    python -m benchmarks.install [WHEEL]

Each wheel and extra gets an environment, a home and a directory for temporary files of its own, all
empty: no cache of pip's, no kernels, no jars. What is fetched comes from the index that pip is set
to, so its seconds are those of the network too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring.report import load, machine, progress, table

_ROOT = Path(__file__).parents[1]
_LOGS = str(_ROOT / "examples" / "shop-week")
_FRAME = f"""
import kafkalog
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
kafkalog.read(spark, {_LOGS!r}, topics="orders").show(3)
"""
_KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "JAVA_HOME")
_HEADER = ("installed", "answer", "venv and pip s", "MB", "first s", "second s")


def main() -> None:
    """Print a row for the command line, and one for the first DataFrame."""
    parser = argparse.ArgumentParser(description=__doc__)
    newest = sorted(_ROOT.glob("dist/kafkalog-*.whl"))[-1:]
    parser.add_argument("wheels", nargs="*", type=Path, default=newest, metavar="WHEEL")
    wheels = parser.parse_args().wheels
    if not wheels:
        sys.exit("there is no wheel: run `make dist` first, or name one")
    rows = []
    for wheel in wheels:
        path = wheel.resolve()
        rows.append(_row(f"{path}", "kafkalog ls", ("kafkalog", "ls", _LOGS)))
        rows.append(_row(f"{path}[spark]", "first DataFrame", ("python", "-c", _FRAME)))
    print(f"{machine([], 'all of them')}; {load()}\n")
    print(table(_HEADER, rows))


def _row(requirement: str, answer: str, command: Sequence[str]) -> list[str]:
    with TemporaryDirectory(prefix="install-") as name:
        folder = Path(name)
        for inner in ("home", "tmp"):
            (folder / inner).mkdir()
        bin_dir = folder / "env" / "bin"
        variables = {key: os.environ[key] for key in _KEPT if key in os.environ}
        variables |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        variables |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
        variables["PATH"] = f"{bin_dir}{os.pathsep}{os.environ['PATH']}"

        def seconds(*words: str) -> float:
            start = time.monotonic()
            subprocess.run(words, check=True, env=variables, cwd=folder, stdout=subprocess.PIPE)
            return time.monotonic() - start

        progress(f"{requirement}: {answer}")
        install = seconds(sys.executable, "-m", "venv", "env")
        install += seconds(str(bin_dir / "python"), "-m", "pip", "install", "-q", requirement)
        on_disk = _megabytes(bin_dir.parent)
        program = [str(bin_dir / command[0]), *command[1:]]
        first, second = seconds(*program), seconds(*program)
    figures = [f"{install:.1f}", f"{on_disk:,.0f}", f"{first:.1f}", f"{second:.1f}"]
    return [Path(requirement).name, answer, *figures]


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 1e6


if __name__ == "__main__":
    main()
