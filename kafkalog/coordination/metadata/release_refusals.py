"""What of a cluster a release of Kafka refuses: levels of features, records, configs. The same
rules are for an upgrade and for a downgrade.

Rules: docs/format.md F1014 to F1018.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from kafkalog.coordination.metadata.config_validators import config_definitions, releases_with
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.record_versions import first_reader, read_versions
from kafkalog.coordination.metadata.releases import (
    METADATA_VERSION,
    Levels,
    is_at_least,
    least_release,
    levels_of,
    metadata_version_name,
    release_of,
)

_METADATA_TOPIC = "__cluster_metadata"
# The last release that reads the first metadata versions.
_BRIDGE = "3.9"
_TOPIC, _BROKER = "topic", "broker"
_UNREADABLE = (
    "no known release reads it: copy the directory of another controller, or one from a backup, or "
    "see kafkalog quorum rebuild --help"
)
# Kafka takes the one for the other.
_NODE_ID, _BROKER_ID = "node.id", "broker.id"


class Refused(Enum):
    """What is refused."""

    METADATA_VERSION = "metadata_version"
    FEATURE = "feature"
    RECORD_TYPE = "record_type"
    RECORD_VERSION = "record_version"
    TOPIC_CONFIG = "topic_config"
    BROKER_CONFIG = "broker_config"
    PROPERTY = "property"


class Effect(Enum):
    """What a refusal does: the process ends; or it starts without what is refused."""

    ENDS = "ends"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a release refuses: `subject` is what, with its place, `reason` why, `remedy`
    what to do, and `reader` the release that it says to start, None for none."""

    kind: Refused
    effect: Effect
    subject: str
    reason: str
    remedy: str
    reader: str | None = None

    @property
    def words(self) -> str:
        """One sentence."""
        return f"{self.subject}: {self.reason}; {self.remedy}"


@dataclass(slots=True)
class SeenRecords:
    """The record types of `__cluster_metadata` that a start reads, each with the highest version
    that a reader must know, and the offset of the first record that needs it, None in a snapshot.
    `names` has those that are known. `unreadable` has the offset of the first record that no
    release can read, and why."""

    versions: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    unreadable: tuple[int | None, str] | None = None

    def add(self, offset: int | None, record_type: int, version: int, name: str | None) -> None:
        """Take a record."""
        known = self.versions.get(record_type)
        if known is None or version > known[0]:
            self.versions[record_type] = (version, offset)
        if name is not None:
            self.names[record_type] = name


def refusals(image: MetadataImage, release: str, seen: SeenRecords | None = None) -> list[Refusal]:
    """Return what a release refuses of a cluster's metadata, what ends the process first. Where a
    remedy is to start another release, it is the one that reads all of it."""
    features = {row["feature"]: row["level"] for row in image.rows("feature")}
    found = [
        *feature_refusals(features, release),
        *(record_refusals(seen, release) if seen is not None else ()),
        *config_refusals(image, release),
    ]
    readers = [each.reader for each in found if each.reader is not None]
    for reader in readers:
        if all(is_at_least(reader, other) for other in readers):
            found = [_by(reader, each) for each in found]
            break
    return sorted(found, key=lambda each: each.effect is not Effect.ENDS)


def _by(release: str, refusal: Refusal) -> Refusal:
    """Return a refusal whose remedy is to start a release, if it is to start an earlier one."""
    if refusal.reader is None:
        return refusal
    remedy = refusal.remedy.replace(f"start Kafka {refusal.reader}", f"start Kafka {release}")
    return replace(refusal, remedy=remedy, reader=release)


def feature_refusals(features: Mapping[str, int], release: str) -> Iterator[Refusal]:
    """Yield the features whose levels a release does not read."""
    for feature, level in sorted(features.items()):
        known = levels_of(release, feature)
        if level in known:
            continue
        if feature == METADATA_VERSION:
            yield _metadata_version(level, known, release)
        else:
            yield _feature(feature, level, known, release)


def _metadata_version(level: int, known: Levels, release: str) -> Refusal:
    name = metadata_version_name(level)
    if level > known.most:
        reason = f"Kafka {release} reads up to {metadata_version_name(known.most)}"
        reader = least_release({METADATA_VERSION: level})
        made = reader = release_of(level) if reader is None else reader
        remedy = (
            f"start Kafka {made or 'of a later release'}, or a later one: a {METADATA_VERSION} is "
            "not lowered"
        )
    else:
        reader = None
        reason = f"Kafka {release} reads {metadata_version_name(known.least)} and later"
        remedy = (
            f"start Kafka {_BRIDGE}, run kafka-features.sh --bootstrap-server HOST:PORT upgrade "
            f"--release-version {_BRIDGE}, then start Kafka {release}"
        )
    subject = f"{METADATA_VERSION} {level} ({name})"
    return Refusal(Refused.METADATA_VERSION, Effect.ENDS, subject, reason, remedy, reader)


def _feature(feature: str, level: int, known: Levels, release: str) -> Refusal:
    reads = f"reads levels up to {known.most}" if known.most else "does not know the feature"
    reader = least_release({feature: level})
    remedy = (
        f"start Kafka {reader or 'of a later release'}; or, while it runs, lower the feature: "
        f"kafka-features.sh --bootstrap-server HOST:PORT downgrade --feature {feature}={known.most}"
    )
    subject = f"feature {feature} at level {level}"
    reason = f"Kafka {release} {reads}"
    return Refusal(Refused.FEATURE, Effect.ENDS, subject, reason, remedy, reader)


def record_refusals(seen: SeenRecords, release: str) -> Iterator[Refusal]:
    """Yield the types and versions of metadata records that a release does not read."""
    known = read_versions(_METADATA_TOPIC, release)
    for number, (version, offset) in seen.versions.items():
        name = seen.names.get(number, f"of type {number}")
        place = "in the newest snapshot of" if offset is None else f"at offset {offset} of"
        subject = f"record {name} {place} {_METADATA_TOPIC}"
        reader = first_reader(_METADATA_TOPIC, number, version)
        remedy = f"start Kafka {reader} or later" if reader else _UNREADABLE
        if number not in known:
            reason = f"Kafka {release} does not know records of type {number}"
            yield Refusal(Refused.RECORD_TYPE, Effect.ENDS, subject, reason, remedy, reader)
        elif version not in known[number]:
            reason = f"it has version {version}, and Kafka {release} reads {known[number]}"
            yield Refusal(Refused.RECORD_VERSION, Effect.ENDS, subject, reason, remedy, reader)


def config_refusals(image: MetadataImage, release: str) -> Iterator[Refusal]:
    """Yield the configs of topics and brokers that a release refuses: a topic's ends the process, a
    broker's does not count."""
    for row in sorted(image.rows("config"), key=lambda row: (row["resource_name"], row["name"])):
        if row["resource_type"] in (_TOPIC, _BROKER):
            of, name, value = row["resource_type"], row["name"], row["value"]
            found = _config(of, row["resource_name"], name, value, release)
            # A broker reads the configs of topics that there are.
            if found is not None and of == _TOPIC and not image.id_of_topic(row["resource_name"]):
                found = replace(found, effect=Effect.IGNORED)
            if found is not None:
                yield found


def _config(of: str, resource: str, name: str, value: str, release: str) -> Refusal | None:
    definition = config_definitions(of, release).get(name)
    kind = Refused.TOPIC_CONFIG if of == _TOPIC else Refused.BROKER_CONFIG
    where = f"topic {resource}" if of == _TOPIC else f"broker {resource or '(all)'}"
    entity = f"--entity-type {of}s " + (
        f"--entity-name {resource}" if resource else "--entity-default"
    )
    change = f"kafka-configs.sh --bootstrap-server HOST:PORT --alter {entity}"
    if definition is None:
        reason = _unknown_config(of, name, release)
        if reason is None:
            return None
        remedy = f"remove it: {change} --delete-config {name}"
        return Refusal(kind, Effect.IGNORED, f"{where}: {name}", reason, remedy)
    refused = definition.refusal(value)
    if refused is None:
        return None
    effect = Effect.ENDS if of == _TOPIC else Effect.IGNORED
    remedy = f"before the change, with the version that runs: {change} --delete-config {name}"
    return Refusal(kind, effect, f"{where}: {name}={value}", refused, remedy)


def _unknown_config(of: str, name: str, release: str) -> str | None:
    """Return why a config has no effect that a release does not know; None for one of a plug-in,
    which no release knows."""
    known = releases_with(of, name)
    if not known:
        return None
    if is_at_least(release, known[-1]):
        return f"Kafka {known[-1]} was the last release with this config, and it has no effect"
    return f"Kafka {known[0]} is the first release with this config, and it has no effect"


def property_refusals(properties: Mapping[str, str], release: str) -> Iterator[Refusal]:
    """Yield what a release refuses of a server.properties: wrong values end the process, as do
    configs without a default that are missing; names that it does not know have no effect."""
    known = config_definitions(_BROKER, release)
    for name, value in sorted(properties.items()):
        definition = known.get(name)
        if definition is not None:
            reason = definition.refusal(value)
            if reason is not None:
                subject, remedy = f"{name}={value}", f"change {name} in server.properties"
                yield Refusal(Refused.PROPERTY, Effect.ENDS, subject, reason, remedy)
        elif (reason := _unknown_config(_BROKER, name, release)) is not None:
            yield Refusal(
                Refused.PROPERTY, Effect.IGNORED, name, reason, "remove it from server.properties"
            )
    yield from _missing(properties, (each.name for each in known.values() if each.is_required))


def _missing(properties: Mapping[str, str], required: Iterable[str]) -> Iterator[Refusal]:
    for name in sorted(required):
        if name not in properties and not (name == _NODE_ID and _BROKER_ID in properties):
            reason = "it is missing, and has no default"
            remedy = f"set {name} in server.properties"
            yield Refusal(Refused.PROPERTY, Effect.ENDS, name, reason, remedy)
