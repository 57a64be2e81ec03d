"""Orders in Avro, as a serializer of a registry writes them, and the registry's record of their
schema: a zero byte, the schema's id, and Avro's binary encoding by hand (a text is its length in
zigzag, and its bytes)."""

import json
from pathlib import Path

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from tests.support.messages.registry_records import registered

SCHEMA = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "customer", "type": "string"}]}
)
# A line of a file of identifiers: what finds the orders of cust-17.
PERSON = '{"value-path": "$.customer", "value": "cust-17"}\n'


def order(customer: str, schema_id: int = 1) -> bytes:
    """An order of a customer, whose name has up to 63 bytes."""
    name = customer.encode()
    return b"\0" + schema_id.to_bytes(4, "big") + bytes([2 * len(name)]) + name


# By customer, and one whose schema is not known.
ORDERS = (order("cust-17"), order("cust-18"), order("cust-17", schema_id=9))


def write_schemas(log_dir: Path) -> None:
    """Make the topic `_schemas` with the schema of orders."""
    directory = log_dir / "_schemas-0"
    directory.mkdir(parents=True)
    batch = write_batch([Record(0, 1000, 0, *registered(1, SCHEMA))], BatchFields(leader_epoch=0))
    (directory / f"{0:020d}.log").write_bytes(batch)
