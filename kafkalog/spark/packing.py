"""What a cluster's machines need, as two files: `python -m kafkalog.spark.packing DIR`.

DIR/kafkalog.zip is for machines that have the libraries: `--py-files`. DIR/environment.tar.gz, also
unpacked in DIR/environment, is a virtual environment with the libraries of the running one, but for
Spark's own, and with compiled kernels: `--archives`. How both are used: docs/operations.md.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.resources.abc import Traversable
from pathlib import Path

from kafkalog.resources import resource

_PACKAGE = Path(__file__).parents[1]
# Each is its own module at the top, where Spark looks for sources.
_SHIMS = {"pyspark_kafkalog": "discovery.py", "pyspark_zookeeper": "zookeeper_discovery.py"}
_RESOURCES = (
    ("schemas",),
    ("jobs",),
    ("conf", "spark-defaults.conf"),
    ("conf", "log4j2.properties"),
)
# A cluster's machines have Spark, with its Python half, themselves.
_OF_SPARK = ("pyspark", "py4j")
_PROGRAM = "kafkalog"
# Tasks need what Spark asks of its Python.
_OF_TASKS = re.compile(r"""extra == ['"]spark['"]""")


def sources() -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of the package, as an installation has them."""
    for path in sorted(_PACKAGE.rglob("*")):
        is_cache = "__pycache__" in path.parts
        if path.is_file() and not is_cache and path.name not in _SHIMS.values():
            yield f"{_PROGRAM}/{path.relative_to(_PACKAGE)}", path.read_bytes()
    for module, name in _SHIMS.items():
        shim = _PACKAGE / "spark" / "source" / name
        if not shim.exists():  # installed: it is in its place
            shim = _PACKAGE.parent / module / "__init__.py"
        yield f"{module}/__init__.py", shim.read_bytes()
    for names in _RESOURCES:
        yield from _below(resource(*names), "/".join((_PROGRAM, *names)))


def _below(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if place.is_file():
        yield name, place.read_bytes()
        return
    for inner in sorted(place.iterdir(), key=lambda entry: entry.name):
        if inner.name == "__pycache__":
            continue
        yield from _below(inner, f"{name}/{inner.name}")


def write_zip(path: Path) -> None:
    """The package alone, for machines that have its libraries."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # In an installation the resources lie in the package: each once.
        for name, content in dict(sources()).items():
            archive.writestr(name, content)


def libraries(name: str = _PROGRAM) -> set[str]:
    """Return the installed distributions that one needs, by their names, but for Spark's own."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for requirement in requires(waiting.pop()) or ():
            needed, _, marker = requirement.partition(";")
            project = re.split(r"[^A-Za-z0-9._-]", needed.strip(), maxsplit=1)[0]
            is_of_other_extra = "extra ==" in marker and not _OF_TASKS.fullmatch(marker.strip())
            if is_of_other_extra or project in _OF_SPARK or project in found:
                continue
            try:
                distribution(project)
            except PackageNotFoundError:
                if marker:
                    continue  # for another Python or system
                raise
            found.add(project)
            waiting.append(project)
    return found


def make_environment(directory: Path) -> None:
    """A virtual environment whose Python is the running one's own, at its place in the system."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = directory / "lib" / python / "site-packages"
    site.mkdir(parents=True)
    for project in sorted(libraries()):
        _copy_distribution(project, site)
    for name, content in sources():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(content)
    base = Path(sys.base_prefix) / "bin" / python
    (directory / "bin").mkdir()
    for name in ("python", "python3", python):
        (directory / "bin" / name).symlink_to(base)
    settings = f"home = {base.parent}\ninclude-system-site-packages = false\n"
    (directory / "pyvenv.cfg").write_text(settings)
    # Isolated: it is the copy that compiles, whatever the path of modules is.
    isolated = [str(directory / "bin" / "python"), "-I"]
    subprocess.run([*isolated, "-m", "kafkalog.inspection.compile_kernels"], check=True)


def _copy_distribution(project: str, site: Path) -> None:
    for file in distribution(project).files or ():
        # Scripts lie above, with the paths of this machine in them.
        if ".." not in file.parts and file.suffix != ".pyc":
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(file.locate()), target)


def pack(directory: Path) -> None:
    """Write both files, in place of those that are there."""
    directory.mkdir(parents=True, exist_ok=True)
    environment = directory / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    make_environment(environment)
    with tarfile.open(directory / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        for entry in sorted(environment.iterdir()):
            archive.add(entry, entry.name)
    write_zip(directory / "kafkalog.zip")


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
