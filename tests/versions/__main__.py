"""A smoke test of the wheel with each version of Spark: `make versions`, or for some of them
`python -m tests.versions WHEEL 4.0 4.3`.

Each Spark has an environment of its own in build/versions, which is kept; the Pythons on the PATH
take turns. What is tried is in smoke.py; docs/supported.md has what came of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
# What pip installs: `[spark]` brings Delta, where one takes the Spark.
SPARKS = {
    "4.0": ("[spark,sql]", "pyspark==4.0.5"),
    "4.1": ("[spark,sql]", "pyspark==4.1.4"),
    "4.2": ("[spark,sql]",),
    "4.3": ("[sql]", "pyspark==4.3.0", "pandas>=2.2,<3"),
}
PYTHONS = ("python3.12", "python3.13", "python3.11", "python3.14")


def found_pythons() -> list[str]:
    """Return the Pythons that run: those in KAFKALOG_PYTHONS, or those of known names."""
    given = os.environ.get("KAFKALOG_PYTHONS", "").split() or PYTHONS
    found = [path for name in given if (path := shutil.which(name)) and _runs(path)]
    return found or [sys.executable]


def _runs(path: str) -> bool:
    # pyenv has commands for versions that are not chosen.
    return subprocess.run([path, "-c", "import venv"], capture_output=True).returncode == 0


def environment(name: str, python: str, wheel: Path) -> Path:
    """Return the Python of the environment for a Spark, with this wheel."""
    folder = ROOT / "build" / "versions" / f"spark-{name}"
    own = folder / "bin" / "python"
    ready = folder / ".ready"
    extra, *others = SPARKS[name]
    wanted = f"{python} {SPARKS[name]}"
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not ready.exists() or ready.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        start_s = time.monotonic()
        subprocess.run([*pip, f"{wheel}{extra}", *others], check=True)
        size = sum(path.stat().st_size for path in folder.rglob("*") if not path.is_symlink())
        print(
            f"installed in {time.monotonic() - start_s:.0f} s, {size / 2**20:.0f} MiB", flush=True
        )
        ready.write_text(wanted)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)], check=True)
    return own


def smoke(name: str, python: str, wheel: Path) -> bool:
    """Run the smoke test with a Spark; return whether all went well."""
    own = environment(name, python, wheel)
    versions = "; ".join(
        f"import {module}; print({module!r}, {module}.__version__, end=' ')"
        for module in ("pyspark", "pyarrow")
    )
    clean = {key: value for key, value in os.environ.items() if "SPARK" not in key}
    clean.pop("PYTHONPATH", None)
    start_s = time.monotonic()
    with TemporaryDirectory() as folder:
        told = [
            str(own),
            "-c",
            f"import platform; print(platform.python_version(), end=' '); {versions}",
        ]
        print(f"Spark {name}: Python", end=" ", flush=True)
        subprocess.run(told, check=True, env=clean, cwd=folder)
        print(flush=True)
        test = [str(own), str(ROOT / "tests" / "versions" / "smoke.py")]
        shop = str(ROOT / "examples" / "shop-week")
        done = subprocess.run([*test, shop], check=False, env=clean, cwd=folder)
    said = "works" if done.returncode == 0 else "FAILS"
    print(f"Spark {name} {said}, {time.monotonic() - start_s:.0f} s", flush=True)
    return done.returncode == 0


def main(wheel: str, *names: str) -> int:
    """Try each Spark; return 1 where one fails."""
    pythons = found_pythons()
    chosen = names or tuple(SPARKS)
    done = [
        smoke(name, pythons[place % len(pythons)], Path(wheel).resolve())
        for place, name in enumerate(chosen)
    ]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
