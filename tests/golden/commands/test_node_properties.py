"""What `kafkalog recover` says of the classes and the controllers that server.properties names,
against what real nodes did. Rules: docs/format.md F1195, F1210, F1393 and F1397 to F1399."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.golden.startup_cases import STARTED_AT, StartupCase, startup_cases
from tests.support.repository import Unpack

_OLD_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_NEW_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_OF_KAFKA = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


@pytest.fixture(scope="module")
def cases(unpacked: Unpack) -> dict[str, StartupCase]:
    return startup_cases(unpacked)


@pytest.mark.parametrize("name", ["authorizer.class.name", "metric.reporters"])
def test_a_node_starts_only_if_its_class_path_has_what_is_not_kafkas(
    name: str, cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1195: a broker of 4.4.0 ended without the class on its class path.
    case = cases["00-control"]
    folder = case.made_in(tmp_path)
    with (folder / "server.properties").open("a") as file:
        file.write(f"{name}=com.example.Missing\n")
        file.write(f"principal.builder.class={_OF_KAFKA}\n")
    given = ["recover", folder / "d1", folder / "d2", "--by", "node", "--format", "json"]
    given += ["--server-properties", folder / "server.properties", "--as-of", STARTED_AT]
    result = CliRunner().invoke(kafkalog, list(map(str, given)))
    code, (node,) = result.exit_code, map(json.loads, result.stdout.splitlines())
    assert (code, node["broker_starts"], node["reasons"]) == (1, None, [])
    (assumed,) = node["assumed"]
    assert assumed.startswith(f"{name} is com.example.Missing")
    given = ["recover", folder / "d1", folder / "d2", "--as-of", STARTED_AT]
    given += ["--server-properties", folder / "server.properties"]
    lines = CliRunner().invoke(kafkalog, list(map(str, given))).stdout.splitlines()
    assert lines[0].startswith("Node 1 starts ONLY IF its class path has com.example.Missing, ")
    assert lines[-1].startswith("node 1 starts ONLY IF its class path has com.example.Missing: ")


@pytest.mark.parametrize(
    ("version", "setting", "starts"),
    [
        ("4.1.0", f"authorizer.class.name={_OLD_AUTHORIZER}", False),
        ("3.9.2", f"authorizer.class.name={_OLD_AUTHORIZER}", False),
        (
            "4.3.1",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            True,
        ),
        ("4.4.0", "metric.reporters=org.apache.kafka.common.metrics.JmxReporter", True),
        ("4.1.0", "metric.reporters=org.apache.kafka.common.metrics.Missing", False),
        ("4.4.0", "create.topic.policy.class.name=org.apache.kafka.server.policy.Missing", False),
    ],
)
def test_the_release_says_which_classes_of_kafka_there_are(
    version: str, setting: str, starts: bool, cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1393, as nodes of these versions did with directories of their own.
    folder = cases["13-3.9.2-on-4.4.0" if version == "3.9.2" else "00-control"].made_in(tmp_path)
    with (folder / "server.properties").open("a") as file:
        file.write(f"{setting}\nsuper.users=User:ANONYMOUS\n")
    given = ["recover", folder / "d1", folder / "d2", "--by", "node", "--format", "json"]
    given += ["--server-properties", folder / "server.properties", "--kafka", version]
    (node,) = map(json.loads, CliRunner().invoke(kafkalog, [*map(str, given)]).stdout.splitlines())
    named = [each for each in node["reasons"] if each["reason"].startswith(setting.split("=")[0])]
    assert bool(named) != starts


def test_a_node_says_which_controllers_it_waits_for(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1397 and F1398: nodes of 4.4.0 stayed up, and served nothing.
    folder = cases["00-control"].made_in(tmp_path)
    settings = folder / "server.properties"
    text = settings.read_text()
    given = ["recover", folder / "d1", folder / "d2", "--by", "node", "--format", "json"]
    given += ["--server-properties", settings]

    def judged(voters: str) -> tuple[bool, str]:
        settings.write_text(text.replace("controller.quorum.voters=1@localhost:29493", voters))
        result = CliRunner().invoke(kafkalog, [*map(str, given)])
        (node,) = map(json.loads, result.stdout.splitlines())
        return node["broker_starts"], "; ".join(node["assumed"])

    starts, assumed = judged("controller.quorum.voters=1@localhost:29493,2@localhost:29999")
    assert starts
    assert "2 of controller.quorum.voters were not given" in assumed
    assert judged("controller.quorum.voters=1@localhost:29493") == (True, "")
    assert judged("controller.quorum.bootstrap.servers=localhost:29493")[0] is False


def jar(path: Path, *names: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(f"{name.replace('.', '/')}.class", b"")
    return path.parent


def test_jars_are_looked_through_for_the_classes_that_settings_name(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1210, as brokers of 4.4.0 did with and without the jar, and with the authorizer of 3.9.
    case = cases["00-control"]
    folder = case.made_in(tmp_path)
    settings = folder / "server.properties"
    text = settings.read_text()
    kafka = jar(tmp_path / "libs/kafka.jar", "kafka.Kafka", _OF_KAFKA)
    (kafka / "broken.jar").write_bytes(b"PK")
    own = jar(tmp_path / "own/reporter.jar", "com.example.Reporter$Inner")

    def judged(added: str, *libs: Path) -> tuple[int, bool | None, str]:
        settings.write_text(f"{text}principal.builder.class={_OF_KAFKA}\n{added}\n")
        given = ["recover", folder / "d1", folder / "d2", "--by", "node", "--format", "json"]
        given += ["--server-properties", settings, "--as-of", STARTED_AT, "--processes", "1"]
        every = map(str, (*given, *(word for path in libs for word in ("--libs", path))))
        result = CliRunner().invoke(kafkalog, list(every))
        (node,) = map(json.loads, result.stdout.splitlines())
        reasons = "; ".join(each["reason"] for each in node["reasons"])
        return result.exit_code, node["broker_starts"], reasons

    reporter = "metric.reporters=com.example.Reporter$Inner"
    assert judged(reporter, kafka, own) == (0, True, "")
    assert judged(reporter, own) == (0, True, "")
    code, starts, reason = judged(reporter, kafka)
    assert (code, starts) == (1, False)
    assert reason == (
        "metric.reporters is com.example.Reporter$Inner, and no jar in "
        f"{kafka} has it ({kafka}/broken.jar cannot be read)"
    )
    old = f"authorizer.class.name={_OLD_AUTHORIZER}"
    assert judged(old, kafka)[1] is False
    assert judged(old, own)[1] is False


@pytest.mark.parametrize("given", [["--libs", "missing"], ["--libs", "server.properties"]])
def test_what_is_no_directory_of_jars_is_refused(
    given: list[str], cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    folder = cases["00-control"].made_in(tmp_path)
    (option, name), place = given, f"{folder}/server.properties"
    line = ["recover", f"{folder}/d1", option, f"{folder}/{name}"]
    result = CliRunner().invoke(kafkalog, [*line, "--server-properties", place])
    assert result.exit_code == 2
    assert f"--libs: '{folder}/{name}' is not valid, expected a directory" in result.stderr
    result = CliRunner().invoke(kafkalog, line)
    assert result.exit_code == 2
    assert "--libs: it needs --server-properties" in result.stderr


def with_zookeeper(folder: Path) -> Path:
    """Make two log directories of a broker of 3.9 with ZooKeeper, and a partition in the second."""
    for name in ("d1", "d2"):
        (folder / name).mkdir()
        (folder / name / "meta.properties").write_text("version=0\nbroker.id=0\ncluster.id=abc\n")
        (folder / name / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    partition = folder / "d2" / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(write_batch([Record(0, 1, 0, None, b"v")]))
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZQ\n")
    (folder / "d2/recovery-point-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    text = "broker.id=0\nzookeeper.connect=localhost:2181\nlog.dirs=d1,d2\nlog.retention.ms=-1\n"
    (folder / "server.properties").write_text(text)
    return folder


def judged_with_zookeeper(folder: Path) -> tuple[int, str]:
    given = ["recover", folder / "d1", folder / "d2", "--processes", "1"]
    given += ["--server-properties", folder / "server.properties"]
    result = CliRunner().invoke(kafkalog, [*map(str, given)])
    return result.exit_code, result.stdout


def test_what_a_broker_with_zookeeper_makes_empty_is_a_finding(tmp_path: Path) -> None:
    # F1399: a broker of 3.9.2 started on such directories, with empty partitions.
    folder = with_zookeeper(tmp_path)
    assert judged_with_zookeeper(folder)[0] == 0
    shutil.rmtree(folder / "d2/orders-0")
    code, text = judged_with_zookeeper(folder)
    assert code == 1
    assert "BEGIN EMPTY: 1 partition" in text
    shutil.rmtree(folder / "d2")
    code, text = judged_with_zookeeper(folder)
    assert code == 1
    assert "d2: the log directory does not exist" in text
    assert "nothing is lost" not in text


def test_what_ends_a_broker_with_zookeeper(tmp_path: Path) -> None:
    # F1399: brokers of 3.9.2 ended.
    folder = with_zookeeper(tmp_path)
    file = folder / "d2/orders-0/partition.metadata"
    file.unlink()
    assert judged_with_zookeeper(folder)[0] == 0
    file.write_text("")
    assert judged_with_zookeeper(folder)[1].startswith("Node 0 does NOT start with Kafka 3.9, ")
    file.unlink()
    for name in ("d1", "d2"):
        with (folder / name / "meta.properties").open("a") as meta:
            meta.write("directory.id=hRXkNyIgSWC5u9gFH56hNw\n")
    assert judged_with_zookeeper(folder)[1].startswith("Node 0 does NOT start with Kafka 3.9, ")
