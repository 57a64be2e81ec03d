"""Write schemas/releases: what each release of Kafka reads, makes and refuses, from the classes and
definitions inside its jars.

    python -m tests.support.broker.releases.write_releases
"""

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from kafkalog.messages.catalog import topic_family
from kafkalog.storage.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from tests.support.broker.java_tools import QUICK_START, run_tool
from tests.support.broker.releases.message_definitions import kafka_definitions
from tests.support.repository import ROOT

FOLDER = ROOT / "schemas" / "releases"
# A patch release of each release that has these classes: one that opens the directories of another.
KAFKA_VERSIONS = ("3.9.2", "4.0.1", "4.1.1", "4.2.1", "4.3.1", "4.4.0")
_PROGRAM = Path(__file__).parent / "java" / "ReleaseFacts.java"
_TOPICS = (CLUSTER_METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
_ALWAYS = ("name", "type")
_BOUNDS = {"least", "most", "values"}
# Longer lists of values say little.
_LONGEST_TEXT = 100
_CHECKED = (*_ALWAYS, "required", "least", "most", "values")

Facts = list[dict[str, Any]]


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def texts() -> dict[str, str]:
    """Return the files by their names."""
    facts = {release_of(version): release_facts(version) for version in KAFKA_VERSIONS}
    return {
        "features.json": _features_text(facts),
        "records.json": _records_text(),
        "configs.json": _configs_text(facts),
        "plugins.json": _plugins_text(facts),
    }


def release_of(kafka_version: str) -> str:
    """Return the release that a patch release is of."""
    return kafka_version.rpartition(".")[0]


def release_facts(kafka_version: str) -> Facts:
    """Return what the classes of a release say."""
    done = run_tool(
        str(_PROGRAM), (), jars="broker", kafka_version=kafka_version, java_options=QUICK_START
    )
    lines = done.stdout.decode("utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def _features_text(facts: Mapping[str, Facts]) -> str:
    newest = facts[release_of(KAFKA_VERSIONS[-1])]
    # Of 3.9 the first ones, which later releases do not have.
    every = chain(*facts.values())
    known = {row["level"]: row["name"] for row in every if row["kind"] == "metadata"}
    known |= {row["level"]: row["name"] for row in newest if row["kind"] == "metadata"}
    levels: dict[str, dict[str, int]] = {}
    for row in newest:
        if row["kind"] == "level" and row["level"]:
            levels.setdefault(row["name"], {})[str(row["level"])] = row["metadata_version"]
    parts = [
        f'"metadata_versions": {_object((str(n), known[n]) for n in sorted(known) if n > 0)}',
        f'"levels": {_object(sorted(levels.items()))}',
        f'"releases": {_object((release, _range_facts(of)) for release, of in facts.items())}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _range_facts(facts: Facts) -> dict[str, Any]:
    bounds = {row["name"]: row["level"] for row in facts if row["kind"] == "bound"}
    least = bounds.get("MINIMUM_VERSION", bounds.get("MINIMUM_KRAFT_VERSION"))
    found = {"metadata.version": [least, bounds["LATEST_PRODUCTION"]]}
    for row in facts:
        if row["kind"] == "feature" and row["most"] > 0:
            found[row["name"]] = [row["least"], row["most"]]
    return found


def _records_text() -> str:
    versions: dict[str, dict[int, dict[str, str]]] = {}
    for kafka_version in KAFKA_VERSIONS:
        definitions = kafka_definitions("broker", kafka_version=kafka_version)
        for topic in _TOPICS:
            for number, kind in topic_family(topic).record_types.items():
                definition = definitions.get(kind.value.name)
                if definition is None and kind.name == "LegacyOffsetCommit":
                    # Before 4.1 one definition was for both types of commits.
                    definition = definitions["OffsetCommitValue"]
                if definition is not None:
                    of_type = versions.setdefault(topic, {}).setdefault(number, {})
                    of_type[release_of(kafka_version)] = definition["validVersions"]
    parts = [
        f'"{topic}": {_object((str(n), of[n]) for n in sorted(of))}'
        for topic, of in versions.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _configs_text(facts: Mapping[str, Facts]) -> str:
    found: dict[str, dict[str, list[str]]] = {"topic": {}, "broker": {}}
    for release, of in facts.items():
        for row in of:
            if row["kind"] == "config":
                found[row["of"]].setdefault(json.dumps(_config(row)), []).append(release)
    parts = [
        f'"{of}": [\n'
        + ",\n".join(
            f'{line[:-1]}, "first": "{lines[line][0]}", "last": "{lines[line][-1]}"}}'
            for line in sorted(lines)
        )
        + "\n]"
        for of, lines in found.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _plugins_text(facts: Mapping[str, Facts]) -> str:
    found: dict[str, list[str]] = {}
    for release, of in facts.items():
        for row in of:
            if row["kind"] == "plugin":
                found.setdefault(row["name"], []).append(release)
    return _object((name, [of[0], of[-1]]) for name, of in sorted(found.items())) + "\n"


def _config(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can be checked of a config; the words of other validators."""
    found = {name: row[name] for name in _CHECKED if row[name] not in (None, [])}
    if row["text"] and _BOUNDS.isdisjoint(found) and len(row["text"]) < _LONGEST_TEXT:
        found["text"] = row["text"]
    elif row["validator"] == "CaseInsensitiveValidString":
        found["any_case"] = True
    return found


def _object(pairs: Iterable[tuple[str, Any]]) -> str:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in pairs)
    return f"{{\n{lines}\n}}"


if __name__ == "__main__":
    main()
