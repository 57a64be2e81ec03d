"""A JVM with Kafka's classes, called by py4j: one process for many requests."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path, launch_gateway

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import QUICK_START, end

# py4j calls methods of the JDK's own classes of collections and futures.
_OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang")]


@contextmanager
def java_gateway(jars: str) -> Iterator[JavaGateway]:
    """A JVM with the class path `jars`, which has ended afterwards."""
    port, process = launch_gateway(
        jarpath=find_jar_path(),
        classpath=class_path(jars),
        javaopts=[*QUICK_START, *_OPENED],
        die_on_exit=True,
        return_proc=True,
    )
    try:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        try:
            yield gateway
        finally:
            gateway.close()
    finally:
        end(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
