"""The real Java producer, as a source of segments to measure with."""

import re
from pathlib import Path

from tests.support.broker.java_tools import ToolError, run_tool
from tests.support.broker.kafka_server import KafkaServer

_TIMEOUT_SECONDS = 600
_SETTINGS = ("batch.size=65536", "linger.ms=50", "acks=1")
_SENT = re.compile(r"^(\d+) records sent", re.MULTILINE)
_SHOWN_CHARACTERS = 1000


def produce(
    server: KafkaServer,
    topic: str,
    record_size: int,
    records: int,
    compression: str,
    payload_file: Path | None = None,
) -> None:
    """Send `records` records into the topic, in batches of up to 64 KiB.

    Values are `record_size` random upper-case letters, or, with `payload_file`, lines of that
    file chosen at random, of whatever size. `compression` is a name as producers know it. Raises
    ToolError where a record is not accepted, or all of it takes longer than ten minutes.
    """
    payload = ["--record-size", str(record_size)]
    if payload_file is not None:
        payload = ["--payload-file", str(payload_file)]
    arguments = ["--bootstrap-server", server.bootstrap, "--topic", topic, *payload]
    arguments += ["--num-records", str(records), "--throughput", "-1"]
    # One option for all settings: of several the tool takes the last alone.
    arguments += ["--command-property", *_SETTINGS, f"compression.type={compression}"]
    output = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        arguments,
        java_options=("-Xmx512m",),
        timeout_seconds=_TIMEOUT_SECONDS,
    )
    # The tool's status is 0 whatever becomes of the records; its last line counts those accepted.
    sent = [int(count) for count in _SENT.findall(output.text)]
    if not sent or sent[-1] != records:
        said = output.text[-_SHOWN_CHARACTERS:]
        raise ToolError(f"{topic}: not all of {records} records were accepted:\n{said}")
