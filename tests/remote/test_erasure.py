"""Searching a bucket for a person's records, and verifying a proof with one: docs/erasure.md F1111,
F1121."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.remote.stores import Store, needs_store
from tests.support.repository import ROOT

pytestmark = needs_store
SHOP = ROOT / "examples" / "shop-week"


def erase(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, ["erase", *map(str, arguments)])
    return result.exit_code, result.stdout


@pytest.fixture
def person(tmp_path: Path) -> Path:
    path = tmp_path / "person.txt"
    path.write_text('c-01\n{"value-path": "$.customer", "value": "c-01"}\n')
    return path


def test_a_bucket_is_searched_as_a_folder_is(store: Store, person: Path) -> None:
    uri, _ = store.bucket(SHOP)
    given = ("--identifiers", person, "--check", "--by", "record", "--format", "json")
    (code, there), (_, here) = erase(uri, *given), erase(SHOP, *given)
    assert code == ExitCode.FINDINGS
    assert there.replace(uri, str(SHOP)) == here
    assert [json.loads(line)["offset"] for line in here.splitlines()]


def test_a_proof_is_verified_with_a_bucket(store: Store, person: Path, tmp_path: Path) -> None:
    proof, erased = tmp_path / "proof.json", tmp_path / "new"
    code, _ = erase(SHOP, "--identifiers", person, "--to", erased, "--proof", proof)
    assert code == ExitCode.DONE
    verify = ("--verify", proof, "--identifiers", person)
    clean, _ = store.bucket(erased)
    assert erase(*verify, clean)[0] == ExitCode.DONE
    # A backup that still has the person.
    backup, _ = store.bucket(SHOP)
    code, told = erase(*verify, clean, backup, "--by", "record", "--format", "json")
    assert code == ExitCode.FINDINGS
    assert all(backup in line for line in told.splitlines())
