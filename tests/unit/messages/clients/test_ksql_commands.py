"""Commands of ksqlDB, in the form that its classes CommandId, Command and KsqlPlanV1 write.

Rule: docs/format.md F1255.
"""

import json
from typing import Any

import pytest

from kafkalog.messages.clients.ksql_commands import (
    command_states,
    ksql_service,
    read_ksql_command,
    without_ksql_secrets,
)
from tests.support.messages.ksql_topic import TOPIC, command


def states(*commands: tuple[str, str]) -> list[str | None]:
    read = [read_ksql_command(key.encode(), value.encode()) for key, value in commands]
    return command_states(each for each in read if each is not None)


@pytest.mark.parametrize(
    ("topic", "service"),
    [
        (TOPIC, "default_"),
        ("_confluent-ksql-pre_prod_command_topic", "pre_prod"),
        ("_confluent-ksql-default__command", None),
        ("orders", None),
    ],
)
def test_command_topics_have_the_id_of_their_service(topic: str, service: str | None) -> None:
    assert ksql_service(topic) == service


def test_a_command_has_its_statement_plan_and_properties() -> None:
    # F1255
    key, value = command(
        "table/`TOTALS`/create",
        "CREATE TABLE totals AS SELECT id, COUNT(*) FROM orders GROUP BY id;",
        query="CTAS_TOTALS_1",
        sources=["ORDERS"],
        properties={"auto.offset.reset": "earliest", "ssl.key.password": "hunter2"},
    )
    read = read_ksql_command(key.encode(), value.encode())
    assert read is not None
    assert (read.kind, read.entity, read.action) == ("table", "TOTALS", "create")
    assert (read.query_id, read.sources, read.sink) == ("CTAS_TOTALS_1", ["ORDERS"], "TOTALS")
    assert read.properties == {"auto.offset.reset": "earliest", "ssl.key.password": "***"}
    assert read.makes_source and read.version == 12


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((None, b"{}"), (b"a/b/c", b"{}"), (b'"a/b"', b"{}"), (b'"a/b/c"', None)),
        *((b'"a/b/c"', b"[]"), (b"\xff", b"{}"), (b"[1]", b"{}")),
    ],
)
def test_other_bytes_are_no_command(key: bytes | None, value: bytes | None) -> None:
    assert read_ksql_command(key, value) is None


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        pytest.param(
            [("stream/`A`/create", "", None), ("stream/A/drop", "", None)],
            ["dropped", None],
            id="a drop has the name without quotes",
        ),
        pytest.param(
            [("stream/`A`/create", "", "CSAS_A_1"), ("stream/`A`/create", "", "CSAS_A_1")],
            ["replaced", "in force"],
            id="create or replace",
        ),
        pytest.param(
            [("stream/`A`/create", "", "CSAS_A_1"), ("terminate/CSAS_A_1/execute", "", None)],
            ["without query", None],
            id="the source is left when its query is terminated",
        ),
        pytest.param(
            [
                *(
                    ("stream/`A`/create", "", None),
                    ("stream/`A`/create", "insert", "INSERTQUERY_2"),
                ),
                ("terminate/INSERTQUERY_2/execute", "", None),
            ],
            ["in force", "terminated", None],
            id="insert into",
        ),
        pytest.param(
            [
                *(("stream/`A`/create", "", "CSAS_A_1"), ("table/`B`/create", "", "CTAS_B_3")),
                ("terminate/ALL/execute", "", None),
                ("stream/A/drop", "", None),
            ],
            ["dropped", "without query", None, None],
            id="terminate all",
        ),
    ],
)
def test_states_are_those_that_a_server_restores(
    commands: list[tuple[str, str, str | None]], wanted: list[str | None]
) -> None:
    # F1255: as RestoreCommandsCompactor and CommandIdAssigner of ksqlDB say.
    made = [
        command(key, "", query=query, is_insert=kind == "insert") for key, kind, query in commands
    ]
    assert states(*made) == wanted


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (
            "CREATE STREAM a WITH ('connection.password'='it''s', value_format='json');",
            "CREATE STREAM a WITH ('connection.password'='***', value_format='json');",
        ),
        ("CREATE STREAM a WITH (KEY_FORMAT = 'KAFKA');", None),
        ("SELECT * FROM a WHERE key = 'x';", None),
        (
            "CREATE SOURCE CONNECTOR j WITH (\"connection.url\" = 'jdbc:x://u:p@h/db');",
            "CREATE SOURCE CONNECTOR j WITH (\"connection.url\" = '***');",
        ),
    ],
)
def test_secrets_of_statements_are_hidden(statement: str, shown: str | None) -> None:
    # F194, F1255
    _, value = command("stream/`A`/create", statement, query="CSAS_A_1")
    hidden: dict[str, Any] = json.loads(without_ksql_secrets(value.encode()))
    assert hidden["statement"] == hidden["plan"]["statementText"] == (shown or statement)
    if shown is None:
        assert without_ksql_secrets(value.encode()) == value.encode()
