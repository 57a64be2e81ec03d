"""schemas/releases against the classes inside Kafka's jars."""

from pathlib import Path

import pytest

from tests.support.broker import java_tools
from tests.support.broker.releases import write_releases
from tests.support.broker.releases.config_values import VALUES
from tests.support.broker.releases.write_releases import FOLDER, KAFKA_VERSIONS, release_of, texts

pytestmark = pytest.mark.deep

_PROGRAM = Path(write_releases.__file__).parent / "java" / "ParsedConfigs.java"


def test_the_tables_are_what_the_classes_say() -> None:
    # F1010 to F1013; `python -m tests.support.broker.releases.write_releases` writes them.
    assert texts() == {path.name: path.read_text() for path in FOLDER.glob("*.json")}


@pytest.mark.parametrize("kafka_version", KAFKA_VERSIONS)
def test_kafkas_parser_refuses_the_same_values(kafka_version: str) -> None:
    # F1013.
    asked = [each for each in VALUES if each[0] == release_of(kafka_version)]
    lines = "".join(f"{of}\t{name}\t{value}\n" for _, of, name, value, _ in asked)
    output = java_tools.run_tool(
        *(str(_PROGRAM), ()), jars="broker", kafka_version=kafka_version, stdin=lines.encode()
    )
    words = output.stdout.decode().split()
    assert words == ["refused" if is_refused else "taken" for *_, is_refused in asked]
