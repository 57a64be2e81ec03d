"""The controllers without which a node serves nothing: who votes, by the metadata or by
server.properties, and who of them starts. Rules: docs/format.md F1397, F1398 and F1407."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.leader_election import StartingBroker
from kafkalog.inspection.start.node_directories import NodeFiles
from kafkalog.inspection.start.reasons import Reason
from kafkalog.storage.log_dir.server_properties import ServerProperties

_VOTERS, _BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
_REGISTRATION, _REGISTRATION_MS = "initial.broker.registration.timeout.ms", "60000"
_METADATA = "the metadata"


def recorded_voters(image: MetadataImage | None) -> dict[int, str]:
    """Return the voters of a dynamic quorum with the ids of their directories; empty for a static
    one."""
    rows = image.rows("voter") if image is not None else ()
    return {row["voter_id"]: row["voter_directory_id"] for row in rows}


def quorum_reasons(node: NodeFiles, image: MetadataImage) -> Iterator[Reason]:
    """Yield why no leader of the controllers is ever elected for a controller of a cluster that has
    run."""
    server, voters, main = node.server, recorded_voters(image), node.metadata_directory
    if server is None or "controller" not in server.roles or main is None:
        return
    stays_up = "broker" not in server.roles
    if set(voters) == {node.node_id} and main.directory_id not in voters.values():
        (expected,) = voters.values()
        detail = (
            f"the only voter of the metadata is node {node.node_id} with directory.id {expected}, "
            f"and this is {main.directory_id or 'none'}: the node does not vote. {_waiting(server)}"
        )
        edit = f"s/^directory\\.id=.*/directory.id={expected}/"
        line = f"sed -i {quote(edit)} {quote(main.meta_path)}"
        yield Reason(main.meta_path, detail, line, main.path, stays_up=stays_up)
    is_static = not voters and image.tables["broker"]
    if is_static and not server.voters and server.bootstrap_controllers:
        detail = (
            f"{_VOTERS} is missing, and the metadata names no voters: kraft.version is 0. "
            f"{_waiting(server)}"
        )
        line = f"set {_VOTERS} to all controllers, as it was"
        yield Reason(server.path, detail, line, "", stays_up=stays_up)


def awaited_controllers(
    node: NodeFiles, image: MetadataImage | None, starting: Sequence[StartingBroker]
) -> Iterator[str]:
    """Yield that a node waits for controllers, if fewer than a majority of them are `starting`, it
    and others; and that it is none of the voters."""
    server, recorded = node.server, recorded_voters(image)
    if server is None or not server.roles:
        return
    voters: Mapping[int, str | None] = recorded or dict.fromkeys(server.voters)
    here = {
        each.node_id
        for each in starting
        if each.node_id in voters and voters[each.node_id] in {None, *each.online}
    }
    missing = [str(each) for each in sorted(voters) if each not in here]
    if missing and len(here) <= len(voters) // 2:
        yield (
            f"a majority of the controllers runs, and {', '.join(missing)} of "
            f"{_METADATA if recorded else _VOTERS} were not given: without a majority "
            f"{_waiting(server, 'it')}"
        )
    if recorded and "controller" in server.roles and node.node_id not in here:
        yield (
            f"node {node.node_id} is a controller that does not vote: the metadata has "
            f"{_named(recorded)}; kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT "
            "add-controller makes it a voter"
        )
    if not voters and "controller" not in server.roles:
        yield (
            f"controllers run at an address of {_BOOTSTRAP}: without them {_waiting(server, 'it')}"
        )


def _named(voters: Mapping[int, str]) -> str:
    return ", ".join(f"{voter} with directory.id {place}" for voter, place in voters.items())


def _waiting(server: ServerProperties, subject: str = "The node") -> str:
    """Return what becomes of a node without a leader of the controllers. Rule: docs/format.md
    F1397."""
    if "broker" not in server.roles:
        return f"{subject} stays up, and serves nothing"
    limit = server.values.get(_REGISTRATION, _REGISTRATION_MS).strip()
    return f"{subject} cannot register, and ends after {_REGISTRATION}, {limit} ms"
