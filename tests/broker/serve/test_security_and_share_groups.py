"""ACLs, SCRAM users and share groups: Kafka's tools print of `kafkalog serve` what they printed of
the live broker."""

import subprocess
import time

import pytest

from kafkalog import serve
from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import QUICK_START, end, run_tool
from tests.support.broker.kafka_server import KafkaServer

pytestmark = [pytest.mark.deep, pytest.mark.broker, pytest.mark.timeout(600)]

ACLS = (
    "--allow-principal User:alice --operation Read --topic orders",
    "--allow-principal User:alice --operation Write --topic orders",
    "--deny-principal User:bob --deny-host 10.0.0.1 --operation All --topic orders",
    "--allow-principal User:carol --operation Read --topic ord --resource-pattern-type prefixed",
    "--allow-principal User:* --operation Describe --topic *",
    "--allow-principal User:carol --operation Read --group billing",
    "--allow-principal User:admin --operation Alter --cluster",
    "--allow-principal User:dora --operation Write --transactional-id t-1",
)
# What an operator asks.
LISTS = (
    "--list",
    "--list --topic orders",
    "--list --topic orders --resource-pattern-type match",
    "--list --topic orders --resource-pattern-type any",
    "--list --topic ord --resource-pattern-type prefixed",
    "--list --topic unknown --resource-pattern-type match",
    "--list --group billing",
    "--list --principal User:carol",
)
# One credential in each request: a broker takes no two of a user.
USERS = (("alice", "SCRAM-SHA-256"), ("alice", "SCRAM-SHA-512"), ("bob", "SCRAM-SHA-512"))
QUOTA = "--alter --add-config producer_byte_rate=1024,consumer_byte_rate=2048"
# The entities whose quotas are set.
QUOTAS = (
    "--entity-type users --entity-name alice",
    "--entity-type users --entity-default",
    "--entity-type clients --entity-name reader",
    "--entity-type users --entity-name bob --entity-type clients --entity-name reader",
)
CONFIGS = tuple(
    f"--describe {entity}"
    for entity in (
        "--entity-type users",
        "--entity-type clients",
        "--entity-type users --entity-type clients",
        *QUOTAS,
    )
)
SHARES = (
    "--list",
    "--describe --group sharing --state",
    "--describe --group sharing --members --verbose",
)
ACL_TOOL = "org.apache.kafka.tools.AclCommand"
CONFIG_TOOL = "kafka.admin.ConfigCommand"
SHARE_TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
QUESTIONS = {ACL_TOOL: LISTS, CONFIG_TOOL: CONFIGS, SHARE_TOOL: SHARES}


def asked(address: str, tool: str, question: str) -> str:
    given = ["--bootstrap-server", address, *question.split()]
    return run_tool(tool, given).stdout.decode()


def answers(address: str) -> dict[str, list[str]]:
    """The words of all answers by the questions, in an order of their own: the tools go through
    hash tables."""
    return {
        question: sorted(
            asked(address, tool, question).replace(address, "ADDRESS").replace(",", " ").split()
        )
        for tool, questions in QUESTIONS.items()
        for question in questions
    }


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], list[str]]:
    """What the broker's tools said, and the directories that it left."""
    work_dir = tmp_path_factory.mktemp("broker")
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"}
    with KafkaServer(work_dir, settings=settings) as server:
        address = server.bootstrap
        server.create_topic("orders", 3)
        for acl in ACLS:
            asked(address, ACL_TOOL, f"--add {acl}")
        for user, mechanism in USERS:
            credential = f"{mechanism}=[iterations=4096,password=secret]"
            place = f"--entity-type users --entity-name {user}"
            asked(address, CONFIG_TOOL, f"--alter --add-config {credential} {place}")
        for entity in QUOTAS:
            asked(address, CONFIG_TOOL, f"{QUOTA} {entity}")
        command = ["java", *QUICK_START, "-cp", class_path("tools")]
        command += ["org.apache.kafka.tools.consumer.ConsoleShareConsumer"]
        command += ["--bootstrap-server", address, "--topic", "orders", "--group", "sharing"]
        consumer = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + 60
            while "Stable" not in asked(address, SHARE_TOOL, SHARES[1]):
                assert time.monotonic() < deadline
            expected = answers(address)
            server.stop()
        finally:
            end(consumer)
    return expected, [str(server.log_dir), str(work_dir / "metadata")]


def test_the_tools_print_what_they_printed_of_the_broker(
    live: tuple[dict[str, list[str]], list[str]],
) -> None:
    expected, log_dirs = live
    with serve(log_dirs) as running:
        found = answers(running.bootstrap_servers)
    for question, words in expected.items():
        assert found[question] == words, question
    # The answers that are compared say something.
    for question, word in (
        (LISTS[2], "principal=User:carol"),
        (CONFIGS[0], "SCRAM-SHA-512=iterations=4096"),
        (CONFIGS[3], "producer_byte_rate=1024.0"),
        (SHARES[1], "Stable"),
    ):
        assert any(word in each for each in expected[question]), expected[question]
