"""The offsets that a group has committed, from its coordinator."""

import time

from confluent_kafka import Consumer, KafkaException

from tests.support.broker.cluster.restored_cluster import WAIT_SECONDS, places
from tests.support.broker.cluster.restored_node import RestoredNode


def committed(node: RestoredNode, group: str) -> dict[tuple[str, int], int]:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
        try:
            found = consumer.committed(places(), WAIT_SECONDS)
            break
        except KafkaException:
            # A coordinator that has just started is not elected yet, or still loads.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        finally:
            consumer.close()
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
