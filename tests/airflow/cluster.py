"""What the DAGs read and where they write, with an Airflow that runs them."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kafkalog.resources import resource
from kafkalog.testing import LogDirectory
from tests.airflow.airflow_server import Airflow, running_airflow
from tests.support.repository import ROOT, delta_jars

HOUR_MS = 60 * 60 * 1000
HOURS = [f"2026-01-01T{hour:02}:00:00Z" for hour in range(4)]


@dataclass(slots=True)
class Cluster:
    """What the DAGs read and where they write, as the Airflow variable says it."""

    airflow: Airflow
    log_dir: LogDirectory
    output: Path
    package: Path

    def point_at(self, logs: str, lake: str = "lake") -> None:
        """Set where the logs are, and in which folder the DAGs write."""
        self.output = self.output.with_name(lake)
        self.airflow.set_variable(
            "kafkalog",
            {
                "logs": logs,
                "output": str(self.output),
                "package": str(self.package),
                "state_topics": ["users"],
            },
        )

    def point_at_cleaned(self) -> None:
        """Set a topic whose value at the first second the cleaner has removed."""
        cleaned = LogDirectory(self.output.parent / "cleaned")
        users = cleaned.topic("users")
        users.records([("ada", "1"), ("ada", "2")])
        users.compact()
        users.records([("ada", "3")])
        self.point_at(cleaned.write(), "lake-of-cleaned")


@contextmanager
def running_cluster(folder: Path, variables: Mapping[str, str]) -> Iterator[Cluster]:
    """Log directories and an Airflow; `variables` are the environment of its processes."""
    log_dir = made_log_dir(folder / "kafka-logs")
    package = package_with_local_jars(folder / "package")
    with running_airflow(folder / "home", variables) as airflow:
        made = Cluster(airflow, log_dir, folder / "lake", package)
        made.point_at(log_dir.write())
        yield made


def made_log_dir(path: Path) -> LogDirectory:
    """Three hours: a record and a commit in each, but for the last commit; users that change."""
    log_dir = LogDirectory(path)
    orders, users = log_dir.topic("orders"), log_dir.topic("users")
    start_ms = log_dir.now_ms
    for hour in range(3):
        log_dir.now_ms = start_ms + hour * HOUR_MS + HOUR_MS // 2
        orders.records([("key", f"hour {hour}")])
        users.records([("ada", f"{hour}"), ("bob", f"{hour}" if hour < 2 else None)])
        if hour < 2:
            log_dir.commit_offsets("billing", {("orders", 0): hour + 1})
    return log_dir


def package_with_local_jars(folder: Path) -> Path:
    """Jobs and settings, with the jars that are there in place of those of Maven."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copytree(ROOT / "jobs", folder / "jobs")
    lines = resource("conf", "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    jars = ",".join(map(str, delta_jars()))
    others = [f"spark.jars {jars}", "spark.ui.enabled false", "spark.driver.host 127.0.0.1",
              "spark.driver.bindAddress 127.0.0.1"]  # fmt: skip
    kept = [line for line in lines if not line.startswith("spark.jars")]
    (folder / "conf" / "spark-defaults.conf").write_text("\n".join([*kept, *others]) + "\n")
    return folder


def rows(folder: Path, columns: list[str]) -> list[tuple[Any, ...]]:
    """The rows of a table of Parquet files, sorted."""
    table = pq.read_table(folder, columns=columns)
    return sorted(zip(*(table[name].to_pylist() for name in columns), strict=True))
