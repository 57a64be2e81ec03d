"""The classes that server.properties names, and that a node loads at its start. Rules:
docs/format.md F1195 and F1210."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse

from kafkalog.coordination.metadata.releases import is_plugin_of
from kafkalog.inspection.start.reasons import Reason
from kafkalog.storage.log_dir.jars import Jars
from kafkalog.storage.log_dir.server_properties import ServerProperties
from kafkalog.words import first_names

_MOST_JARS = 3
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_TIER = "remote.log.storage.manager.class.name"
_TIER_PATH = "remote.log.storage.manager.class.path"


@dataclass(frozen=True, slots=True)
class Plugins:
    """Why the node does not start, and by the names of their settings the classes that nothing is
    known of."""

    reasons: Sequence[Reason] = ()
    not_judged: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def needed(self) -> list[str]:
        """The classes that have to be on the class path."""
        return sorted({name for names in self.not_judged.values() for name in names})

    def assumed(self) -> Iterator[str]:
        """Yield a sentence for each setting with classes that are not judged."""
        for setting, names in sorted(self.not_judged.items()):
            yield (
                f"{setting} is {', '.join(names)}: it is not Kafka's, and whether it is on the "
                "class path is NOT JUDGED; without it the process ends: give libs/ of Kafka with "
                "--libs, and other directories of its class path"
            )


def judged_plugins(server: ServerProperties | None, jars: Jars | None, release: str) -> Plugins:
    """Return what becomes of the classes that server.properties names; `jars` are those on the
    class path, None if they are not known: then the release says which of them are Kafka's."""
    if server is None:
        return Plugins()
    named = server.classes
    if jars is None or not jars.has_kafka:
        named = {
            setting: [each for each in classes if not is_plugin_of(release, each)]
            for setting, classes in named.items()
        }
    tier = server.plugin_without_path
    if jars is not None:
        of_tier = {_TIER: [tier]} if tier else {}
        reasons = _tier_reasons(server) if not tier else ()
        return Plugins([*reasons, *_missing(server, {**named, **of_tier}, jars)])
    removed = {name: [*filter(_is_of_kafka, classes)] for name, classes in named.items()}
    others = {name: [*filterfalse(_is_of_kafka, classes)] for name, classes in named.items()}
    return Plugins(
        [*_tier_reasons(server), *_removed(server, removed, release)],
        {name: classes for name, classes in others.items() if classes},
    )


def _is_of_kafka(name: str) -> bool:
    return name.startswith(("org.apache.kafka.", "kafka."))


def _removed(
    server: ServerProperties, names: Mapping[str, Sequence[str]], release: str
) -> Iterator[Reason]:
    for setting, classes in sorted(names.items()):
        if classes:
            detail = f"{setting} is {', '.join(classes)}, which Kafka {release} does not have"
            line = (
                f"change {setting} in {server.path}, or give libs/ of Kafka with --libs if a jar "
                "there has it"
            )
            if ACL_AUTHORIZER in classes:
                line = f"set {setting}={STANDARD_AUTHORIZER} in {server.path}"
            yield Reason(server.path, detail, line, "")


def _missing(
    server: ServerProperties, names: Mapping[str, Sequence[str]], jars: Jars
) -> Iterator[Reason]:
    for setting, classes in sorted(names.items()):
        missing = [each for each in classes if not jars.has(each)]
        if missing:
            detail = f"{setting} is {', '.join(missing)}, and no jar in "
            detail += f"{', '.join(jars.directories)} has it"
            if jars.unreadable:
                detail += f" ({first_names(jars.unreadable, _MOST_JARS)} cannot be read)"
            line = (
                f"put its jar into {jars.directories[0]}, or give the directory that has it with "
                f"another --libs; if it is not needed, remove {setting} from {server.path}"
            )
            yield Reason(server.path, detail, line, "")


def _tier_reasons(server: ServerProperties) -> Iterator[Reason]:
    plugin = server.plugin_without_path
    if plugin is None or server.roles == {"controller"}:
        return
    detail = f"{_TIER} is {plugin}, which Kafka does not have, and {_TIER_PATH} names no jar of it"
    line = f"add {_TIER_PATH}, or put the jar into libs/ of Kafka, and give that directory with "
    line += "--libs"
    if not plugin:
        detail = f"{_TIER} is missing, and remote.log.storage.system.enable is true"
        line = f"set {_TIER} in {server.path}, or remove remote.log.storage.system.enable"
    yield Reason(server.path, detail, line, "")
