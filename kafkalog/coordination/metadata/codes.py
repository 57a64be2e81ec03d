"""Names of the numbers in records of `__cluster_metadata`. Rule: docs/format.md F762.

A number without a name, of a later Kafka, stays a number.
"""

from __future__ import annotations

from collections.abc import Mapping

# Instead of the id of a replica's directory: it has one, which is not named; it may have none yet;
# it has lost the one that it had.
MIGRATING, UNASSIGNED, LOST = "A" * 22, "A" * 21 + "Q", "A" * 21 + "g"
CONFIG_RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
ACL_RESOURCES = {
    1: "any",
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional-id",
    6: "delegation-token",
    7: "user",
}
PATTERNS = {1: "any", 2: "match", 3: "literal", 4: "prefixed"}
OPERATIONS = {
    1: "Any",
    2: "All",
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
    13: "CreateTokens",
    14: "DescribeTokens",
    15: "TwoPhaseCommit",
}
PERMISSIONS = {1: "any", 2: "deny", 3: "allow"}
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
RECOVERY_STATES = {0: "recovered", 1: "recovering"}


def named(names: Mapping[int, str], number: int) -> str:
    """Return the name of a number, or the number as text."""
    return names.get(number, str(number))


def number_of(names: Mapping[int, str], name: str) -> int:
    """Return the number whose name `named` has returned."""
    return next((number for number, each in names.items() if each == name), None) or int(name)
