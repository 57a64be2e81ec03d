"""The versions of Spark that kafkalog works with, and the jars that each of them needs.

Knows no pyspark: `kafkalog job --spark-submit` prints the arguments for a Spark that may be
elsewhere. What was tried with what: docs/supported.md.
"""

from __future__ import annotations

import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from kafkalog.errors import KafkaLogError, OptionError
from kafkalog.log_lines import warn_once
from kafkalog.resources import resource

_SCALA = "2.13"
# The newest Delta whose jars are on every mirror of Maven Central. Its jars go with all wheels of
# delta-spark 4.4.
_DELTA = "4.4.0"


class _Jars(NamedTuple):
    """The versions of jars that a minor version of Spark was tried with; None without any."""

    delta: str | None
    avro: str


_KNOWN = {
    (4, 0): _Jars(_DELTA, "4.0.2"),
    (4, 1): _Jars(_DELTA, "4.1.1"),
    (4, 2): _Jars(_DELTA, "4.2.0"),
    (4, 3): _Jars(None, "4.2.0"),
}
_OLDEST, _NEWEST = min(_KNOWN), max(_KNOWN)
# The first with limits of a stream's micro-batches, and with today's names of classes of streams.
WITH_STREAM_LIMITS = (4, 2)
WITH_STREAM_PACKAGES = (4, 1)
PACKAGES = "spark.jars.packages"
EXCLUDES = "spark.jars.excludes"
# What only tables in Delta's format need; the other formats start without Delta's jar.
_FOR_DELTA = (
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.databricks.delta.snapshotPartitions",
)
_SPARK_CORE = re.compile(rf"spark-core_{re.escape(_SCALA)}-(.+)\.jar")


class SparkVersion(NamedTuple):
    """A version of Spark, as in `4.2.0`, with the numbers in front."""

    major: int
    minor: int
    text: str

    @classmethod
    def of(cls, text: str) -> SparkVersion:
        """Return a version of its text; vendors put more behind the numbers."""
        numbers = re.findall(r"\d+", text)[:2]
        major, minor = (*map(int, numbers), 0, 0)[:2]
        return cls(major, minor, text)

    @property
    def is_too_old(self) -> bool:
        """Whether kafkalog does not work with it."""
        return self[:2] < _OLDEST

    @property
    def is_unknown(self) -> bool:
        """Whether it came out after this kafkalog, which may work with it all the same."""
        return self[:2] > _NEWEST

    @property
    def warning(self) -> str:
        """What a user is to know of a version that is unknown."""
        return (
            f"Spark {self.text} is newer than this kafkalog, which was tried with "
            f"{_text(_OLDEST)} to {_text(_NEWEST)}"
        )

    @property
    def delta_package(self) -> str | None:
        """The package of Delta's jar, None where no Delta takes this Spark yet."""
        known = _KNOWN.get(self[:2])
        if known is None or known.delta is None:
            return None
        return f"io.delta:delta-spark_{self.major}.{self.minor}_{_SCALA}:{known.delta}"

    @property
    def avro_package(self) -> str:
        """The package of spark-avro's jar."""
        known = _KNOWN.get(self[:2])
        return f"org.apache.spark:spark-avro_{_SCALA}:{known.avro if known else self.text}"

    @property
    def protobuf_package(self) -> str:
        """The package of spark-protobuf's jar, which no test runs."""
        return f"org.apache.spark:spark-protobuf_{_SCALA}:{self.text}"

    def refuse_delta(self, option: str = "format") -> None:
        """Raise OptionError where no Delta takes this Spark."""
        if self.delta_package is None:
            raise OptionError(
                option,
                "delta",
                f"parquet or json: no Delta is known that takes Spark {self.text} (Delta goes with "
                f"{_text(_OLDEST)} to {_text(_newest_with_delta())}: docs/supported.md)",
            )


def settings_for(
    spark: SparkVersion, *, with_delta: bool, with_avro: bool = False
) -> dict[str, str]:
    """Return the settings in conf/spark-defaults.conf, with the jars for a version of Spark."""
    lines = resource("conf", "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    settings = {key: value.strip() for key, value in pairs}
    excluded = () if with_delta else _FOR_DELTA
    settings = {key: value for key, value in settings.items() if key not in excluded}
    packages = [spark.delta_package] if with_delta and spark.delta_package else []
    packages += [spark.avro_package] if with_avro else []
    if packages:
        return settings | {PACKAGES: ",".join(packages)}
    return {key: value for key, value in settings.items() if key not in (PACKAGES, EXCLUDES)}


def submitted_version() -> SparkVersion | None:
    """Return the version of the Spark that `spark-submit` starts here: that of SPARK_HOME, of the
    `spark-submit` on the PATH, or of the installed pyspark; None without any."""
    found = shutil.which("spark-submit")
    homes = [os.environ.get("SPARK_HOME"), found and Path(found).resolve().parents[1]]
    for home in homes:
        for jar in Path(home, "jars").glob(f"spark-core_{_SCALA}-*.jar") if home else ():
            if match := _SPARK_CORE.fullmatch(jar.name):
                return SparkVersion.of(match[1])
    try:
        return SparkVersion.of(version("pyspark"))
    except PackageNotFoundError:
        return None


def check_version(text: str) -> None:
    """Warn once of a Spark that came out after this kafkalog. Raises KafkaLogError for one that is
    too old."""
    found = SparkVersion.of(text)
    if found.is_too_old:
        raise KafkaLogError(f"Spark {text} is too old: kafkalog needs {_text(_OLDEST)} or newer")
    if found.is_unknown:
        warn_once(__name__, found.warning)


def _newest_with_delta() -> tuple[int, int]:
    return max(key for key, jars in _KNOWN.items() if jars.delta is not None)


def _text(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))
