"""A running MirrorMaker 2 that copies from one cluster to another."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import end, server_command

SOURCE = "copy"
_SETTINGS = {
    "clusters": f"{SOURCE},live",
    f"{SOURCE}->live.enabled": "true",
    "live->copy.enabled": "false",
    "emit.heartbeats.enabled": "false",
    f"{SOURCE}.consumer.isolation.level": "read_committed",
    # Nothing can be written to the source.
    "offset-syncs.topic.location": "target",
    "sync.topic.acls.enabled": "false",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "offset.lag.max": "0",
    **{
        f"{name}.replication.factor": "1"
        for name in ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic")
    },
    **{f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")},
    "replication.factor": "1",
}


@contextmanager
def mirror_maker(
    folder: Path,
    source: str,
    target: str,
    topics: Sequence[str],
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Path]:
    """The log of a MirrorMaker that copies these topics; its process has ended afterwards. `more`
    are further settings."""
    settings = {
        **_SETTINGS,
        **more,
        f"{SOURCE}.bootstrap.servers": source,
        "live.bootstrap.servers": target,
        f"{SOURCE}->live.topics": ",".join(topics),
    }
    folder.mkdir()
    properties = folder / "mirror.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    log = folder / "mirror.log"
    main = "org.apache.kafka.connect.mirror.MirrorMaker", properties
    command = server_command(class_path("mirror"), folder / "log4j2.properties", *main)
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        )
    try:
        yield log
    finally:
        end(process)
