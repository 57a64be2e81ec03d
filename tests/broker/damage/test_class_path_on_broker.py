"""What `kafkalog recover --libs` says of the classes that server.properties names is what a broker
with these jars does. Rules: docs/format.md F1195 and F1210."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.broker.class_paths import class_path
from tests.support.broker.node_starts.started_node import started_node
from tests.support.broker.node_starts.typed_lines import recovered
from tests.support.golden.startup_cases import startup_cases
from tests.support.repository import Unpack
from tests.support.serve.java_client import needs_compiler

pytestmark = [pytest.mark.deep, needs_compiler]
_SOURCE = """
package com.example;

public class Reporter {
    public static class Inner implements org.apache.kafka.common.metrics.MetricsReporter {
        public void init(java.util.List<org.apache.kafka.common.metrics.KafkaMetric> metrics) {}
        public void metricChange(org.apache.kafka.common.metrics.KafkaMetric metric) {}
        public void metricRemoval(org.apache.kafka.common.metrics.KafkaMetric metric) {}
        public void close() {}
        public void configure(java.util.Map<String, ?> configs) {}
    }
}
"""
_OWN = "metric.reporters=com.example.Reporter$Inner"


@pytest.fixture(scope="module")
def libs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kafka's jars in one directory, as a distribution has them."""
    folder = tmp_path_factory.mktemp("kafka") / "libs"
    folder.mkdir()
    for number, path in enumerate(class_path("broker").split(":")):
        (folder / f"{number}-{Path(path).name}").symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def own_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar with a reporter of metrics."""
    folder = tmp_path_factory.mktemp("own")
    source = folder / "Reporter.java"
    source.write_text(_SOURCE)
    classes = folder / "classes"
    subprocess.run(
        ["javac", "-cp", class_path("broker"), "-d", str(classes), str(source)], check=True
    )
    path = folder / "libs/reporter.jar"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as jar:
        for each in classes.rglob("*.class"):
            jar.write(each, each.relative_to(classes))
    return path


@pytest.mark.parametrize(
    ("setting", "has_jar", "starts"),
    [
        (_OWN, True, True),
        (_OWN, False, False),
        # The authorizer of clusters with ZooKeeper, which 4.0 no longer has.
        ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", True, False),
    ],
)
def test_a_node_starts_if_the_jars_have_the_class(
    setting: str,
    has_jar: bool,
    starts: bool,
    libs: Path,
    own_jar: Path,
    unpacked: Unpack,
    tmp_path: Path,
) -> None:
    folder = startup_cases(unpacked)["00-control"].made_in(tmp_path / "node")
    with (folder / "server.properties").open("a") as file:
        file.write(f"\n{setting}\n")
    more = (own_jar,) if has_jar else ()
    given = [word for path in (libs, *(each.parent for each in more)) for word in ("--libs", path)]
    text = recovered(folder, *given)
    assert text.startswith("Node 1 starts with Kafka 4.4.0\n") == starts
    assert ("Node 1 does NOT start" in text) != starts
    found = started_node(folder, jars=more)
    assert found.started == starts, found.log[-3000:]
