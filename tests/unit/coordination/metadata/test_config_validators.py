"""Values of configs that releases refuse, by what Kafka's own ConfigDef.parse says of them."""

import pytest

from kafkalog.coordination.metadata.config_validators import config_definitions, releases_with
from tests.support.broker.releases.config_values import VALUES


@pytest.mark.parametrize(("release", "of", "name", "value", "is_refused"), VALUES)
def test_a_value_is_refused(release: str, of: str, name: str, value: str, is_refused: bool) -> None:
    # F1013; tests/broker/cluster/test_release_tables.py asks Kafka's parser the same.
    assert (config_definitions(of, release)[name].refusal(value) is not None) == is_refused


def test_configs_come_and_go_with_releases() -> None:
    # F1018.
    assert releases_with("topic", "message.format.version") == ["3.9"]
    assert releases_with("broker", "zookeeper.connect") == ["3.9"]
    assert releases_with("topic", "internal.segment.bytes")[0] == "4.1"
    assert releases_with("topic", "of.a.plug-in") == []


def test_configs_without_a_default_are_required() -> None:
    # F1016.
    required = {
        each.name for each in config_definitions("broker", "4.0").values() if each.is_required
    }
    assert required == {"node.id", "process.roles"}
