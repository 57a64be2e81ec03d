"""Class paths of real Kafka, resolved by Maven once per pom and kept in the user's cache.

The jars themselves stay in Maven's own repository.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_POMS = Path(__file__).parent / "jars"
_PROGRAMS = ("java", "mvn")
# A first run fetches some 80 MB; pytest's own limit would not say what took so long.
_MAVEN_TIMEOUT_SECONDS = 240
_SHOWN_CHARACTERS = 2000


class ClassPathError(RuntimeError):
    """A class path that could not be had, and why."""


def missing_programs() -> list[str]:
    """Those of the programs needed to run real Kafka that this machine lacks."""
    return [program for program in _PROGRAMS if shutil.which(program) is None]


def class_path(name: str, kafka_version: str | None = None) -> str:
    """The class path of `jars/<name>/pom.xml`, all of whose jars exist; with `kafka_version` of
    another release than the pom's own, where it has the property `kafka.version`.

    Raises ClassPathError where there is no such pom, no java, no mvn, or where Maven fails.
    """
    pom = _POMS / name / "pom.xml"
    if not pom.is_file():
        known = ", ".join(sorted(path.parent.name for path in _POMS.glob("*/pom.xml")))
        raise ClassPathError(f"no class path is called {name!r}; known are {known}")
    if missing := missing_programs():
        raise ClassPathError(f"not on the PATH, and needed to run Kafka: {', '.join(missing)}")
    label = name if kafka_version is None else f"{name}-{kafka_version}"
    cached = _cache_file(label, pom)
    found = _read_cached(cached)
    if found is None:
        found = _resolve(pom, kafka_version)
        _store(cached, found)
    return found


def _cache_file(name: str, pom: Path) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    return Path(cache) / "kafkalog" / "class-paths" / f"{name}-{digest[:32]}.txt"


def _read_cached(cached: Path) -> str | None:
    """The stored class path, or None unless it is there with all its jars."""
    try:
        found = cached.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return found if _all_exist(found) else None


def _all_exist(found: str) -> bool:
    return bool(found) and all(os.path.isfile(jar) for jar in found.split(os.pathsep))


def _resolve(pom: Path, kafka_version: str | None) -> str:
    with tempfile.TemporaryDirectory(prefix="kafkalog-class-path-") as scratch:
        output = Path(scratch) / "class-path.txt"
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"]
        command.append(f"-Dmdep.outputFile={output}")
        if kafka_version is not None:
            command.append(f"-Dkafka.version={kafka_version}")
            command.append(f"-Dscala.version={_scala_of(kafka_version)}")
        _run_maven(command, pom)
        found = output.read_text(encoding="utf-8").strip() if output.is_file() else ""
    if not _all_exist(found):
        raise ClassPathError(f"Maven succeeded and named no usable jars for {pom}: {found!r}")
    return found


def _scala_of(kafka_version: str) -> str:
    """The version of Scala that a release before 3.0 was compiled with; later ones need 2.13."""
    if kafka_version.startswith("0."):
        return "2.11"
    return "2.12" if int(kafka_version.partition(".")[0]) < 3 else "2.13"


def _run_maven(command: list[str], pom: Path) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_MAVEN_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"Maven did not resolve {pom} within {_MAVEN_TIMEOUT_SECONDS} s; it keeps what "
        detail += "it has fetched, another run goes on from there"
        raise ClassPathError(detail) from error
    if done.returncode:
        said = done.stdout.strip()[-_SHOWN_CHARACTERS:]
        raise ClassPathError(f"Maven could not resolve {pom} (status {done.returncode}):\n{said}")


def _store(cached: Path, found: str) -> None:
    cached.parent.mkdir(parents=True, exist_ok=True)
    # Another run may be at it too: a file appears whole or not at all.
    scratch = cached.with_name(f"{cached.name}.{os.getpid()}.tmp")
    scratch.write_text(found, encoding="utf-8")
    scratch.replace(cached)
