"""Which function answers which request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkalog.messages.protocol import API_VERSIONS, apis
from kafkalog.messages.schema import Values
from kafkalog.server.answers import cluster, logs, refusals, security, transactions
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Answer

FETCH = 1

PRODUCE = 0

# What an answer needs that is read from files as a whole, once: properties of ServedCluster.
NEEDED: Mapping[int, Sequence[str]] = {
    FETCH: ("topics_by_id",),
    3: ("brokers", "topics_by_id"),
    10: ("brokers",),
    29: ("image",),
    32: ("history",),
    48: ("image",),
    50: ("image",),
    60: ("brokers",),
    65: ("transactional_ids",),
    66: ("brokers", "transactional_ids"),
    75: ("brokers", "topics_by_id"),
}
# By the requests' keys. They read files, and change nothing.
ANSWERS: Mapping[int, Answer] = {
    PRODUCE: refusals.produce,
    17: refusals.sasl_handshake,
    19: refusals.create_topics,
    20: refusals.delete_topics,
    FETCH: logs.fetch,
    2: logs.list_offsets,
    3: cluster.metadata,
    10: cluster.find_coordinator,
    23: logs.offset_for_leader_epoch,
    29: security.describe_acls,
    32: cluster.describe_configs,
    35: cluster.describe_log_dirs,
    36: refusals.sasl_authenticate,
    46: cluster.list_partition_reassignments,
    48: security.describe_client_quotas,
    50: security.describe_user_scram_credentials,
    60: cluster.describe_cluster,
    61: transactions.describe_producers,
    65: transactions.describe_transactions,
    66: transactions.list_transactions,
    75: cluster.describe_topic_partitions,
}


def api_versions(keys: frozenset[int], error: ErrorCode = ErrorCode.NONE) -> Values:
    """Return the answer to ApiVersions: what the server offers, no more and no less."""
    offered = [apis()[key] for key in sorted({*keys, API_VERSIONS})]
    return {
        "errorCode": error,
        "apiKeys": [
            {
                "apiKey": api.key,
                # As brokers say: librdkafka looks for the first versions.
                "minVersion": 0 if api.key == PRODUCE else api.request.versions.first,
                "maxVersion": api.request.versions.last,
            }
            for api in offered
        ],
    }
