"""`kafkalog serve` with TLS and users: librdkafka, Java's consumer and others log in."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.repository import ROOT
from tests.support.serve.certificates import self_signed
from tests.support.serve.clients import records_of_confluent_kafka, records_of_view

SHOP = str(ROOT / "examples" / "shop-week")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LOGIN = {"sasl.username": "al,i=ce", "sasl.password": "gr\u00fcn =1"}


def test_users_of_a_file_log_in_over_tls(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    users, ready = tmp_path / "users.properties", tmp_path / "ready"
    users.touch(mode=0o600)
    users.write_text("al,i\\=ce = gr\u00fcn =1\nbob=secret\n")
    command = [sys.executable, "-m", "kafkalog", "serve", SHOP, "--users", str(users)]
    command += ["--tls-certificate", certificate, "--tls-key", key, "--ready-file", str(ready)]
    # Without --insecure: clients are authenticated, and connections encrypted.
    command += ["--listen", "0.0.0.0:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.05)
        address = "localhost:" + ready.read_text().strip().rpartition(":")[2]
        settings = {"security.protocol": "SASL_SSL", "ssl.ca.location": certificate, **LOGIN}
        expected = records_of_view([SHOP], "read_uncommitted")
        for mechanism in MECHANISMS:
            given = {**settings, "sasl.mechanism": mechanism}
            found = records_of_confluent_kafka(address, "read_uncommitted", settings=given)
            assert found == expected
            wrong = {**given, "bootstrap.servers": address, "sasl.password": "secret"}
            assert "Authentication failed" in refusal(wrong)
        plain = {"bootstrap.servers": address, "security.protocol": "PLAINTEXT"}
        assert refusal(plain) != ""
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "closed: PLAIN: wrong user name or password" in said
    for secret in ("secret", "gr\u00fcn", "al,i"):
        assert secret not in said


def refusal(settings: Mapping[str, str]) -> str:
    """What librdkafka says of a server that does not let it in; nothing if it does."""
    errors: list[str] = []
    given: dict[str, Any] = {**settings}
    given["error_cb"] = lambda error: errors.append(str(error))
    client = AdminClient(given)
    try:
        client.list_topics(timeout=0.2)
    except KafkaException:
        end = time.monotonic() + 30
        while not errors:
            assert time.monotonic() < end, "librdkafka says nothing"
            client.poll(0.1)
    return " ".join(errors)
