"""Write schemas/protocol: the requests and responses that `kafkalog serve` speaks, as data in the
form of docs/messages.md, from the definitions inside Kafka's jars.

    python -m tests.support.broker.releases.write_protocol
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.broker.releases.message_definitions import Definition, kafka_definitions
from tests.support.repository import ROOT

FOLDER = ROOT / "schemas" / "protocol"
# The file of each request.
APIS = {
    "cluster": (
        *("ApiVersions", "Metadata", "DescribeCluster", "DescribeTopicPartitions"),
        *("DescribeConfigs", "DescribeLogDirs", "ListPartitionReassignments", "FindCoordinator"),
    ),
    "logs": ("Fetch", "ListOffsets", "OffsetForLeaderEpoch"),
    "groups": (
        *("OffsetFetch", "ListGroups", "DescribeGroups", "ConsumerGroupDescribe"),
        "ShareGroupDescribe",
        *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat"),
        "OffsetCommit",
    ),
    "transactions": ("ListTransactions", "DescribeTransactions", "DescribeProducers"),
    "sasl": ("SaslHandshake", "SaslAuthenticate"),
    "security": ("DescribeAcls", "DescribeUserScramCredentials", "DescribeClientQuotas"),
    "writes": ("Produce", "CreateTopics", "DeleteTopics"),
}


def main() -> None:
    """Write the files."""
    definitions = kafka_definitions("broker", on_the_wire=True)
    FOLDER.mkdir(exist_ok=True)
    for file, names in APIS.items():
        texts = [_api_text(name, definitions) for name in names]
        (FOLDER / f"{file}.json").write_text("[\n" + ",\n".join(texts) + "\n]\n", encoding="utf-8")


def _api_text(name: str, definitions: Mapping[str, Definition]) -> str:
    request, response = (definitions[f"{name}{kind}"] for kind in ("Request", "Response"))
    parts = [f'  "request": {_message_text(request)}', f'  "response": {_message_text(response)}']
    head = f'{{"key": {request["apiKey"]}, "name": "{name}",\n'
    return head + ",\n".join(parts) + "}"


def _message_text(data: Definition) -> str:
    structs: dict[str, list[dict[str, Any]]] = {}
    shared = {struct["name"]: struct["fields"] for struct in data.get("commonStructs", ())}
    fields = [_field(field, shared, structs) for field in data["fields"]]
    head: dict[str, Any] = {"name": data["name"], "versions": data["validVersions"]}
    if data.get("flexibleVersions", "none") != "none":
        head["flexible"] = data["flexibleVersions"]
    texts = [json.dumps(head)[:-1] + f', "fields": {_fields_text(fields, 4)}']
    if structs:
        each = [f'      "{name}": {_fields_text(of, 8)}' for name, of in structs.items()]
        texts.append('\n    "structs": {\n' + ",\n".join(each) + "}")
    return ",".join(texts) + "}"


def _fields_text(fields: list[dict[str, Any]], indent: int) -> str:
    lines = ",\n".join(" " * indent + json.dumps(field) for field in fields)
    return f"[\n{lines}]" if fields else "[]"


def _field(
    field: Definition, shared: Mapping[str, Any], structs: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    base = field["type"].removeprefix("[]")
    children = field.get("fields") or shared.get(base)
    if children and base not in structs:
        structs[base] = []
        structs[base] = [_field(child, shared, structs) for child in children]
    tagged = field.get("taggedVersions")
    given: dict[str, Any] = {
        "name": field["name"][0].lower() + field["name"][1:],
        # Raw batches are bytes with a length.
        "type": "bytes" if base == "records" else field["type"],
        "versions": field.get("versions") or tagged,
    }
    if given["versions"] == "0+":
        del given["versions"]
    if field.get("nullableVersions"):
        given["nullable"] = field["nullableVersions"]
    if tagged:
        given["tag"] = field["tag"]
    given.update(_default(field))
    return given


def _default(field: Definition) -> Iterator[tuple[str, Any]]:
    """Yield the default, if one is given and not what the type has without."""
    if field.get("default") is None:
        return
    text = str(field["default"]).lower()
    if text == "null":
        yield "default", None
    elif field["type"] == "string":
        if field["default"]:
            yield "default", field["default"]
    elif field["type"] == "bool":
        if text == "true":
            yield "default", True
    elif int(text, 0):
        yield "default", int(text, 0)


if __name__ == "__main__":
    main()
