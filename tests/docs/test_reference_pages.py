"""docs/reference is what `make reference` writes: all views, tables, jobs and options."""

import pytest

from docs.write_reference import FOLDER, JOBS, job_tables, reference_pages, table_givers, type_text
from kafkalog.schemas import table_names


def words(text: str) -> list[str]:
    """Where lines end is up to the version of Python that wraps a help text."""
    return text.split()


@pytest.mark.parametrize("name", reference_pages())
def test_pages_are_up_to_date(name: str) -> None:
    written = (FOLDER / name).read_text()
    assert words(written) == words(reference_pages()[name]), "`make reference` writes it"


def test_every_table_has_a_view_or_a_job_that_gives_it() -> None:
    assert [name for name, givers in table_givers().items() if not givers] == []


def test_every_job_names_its_tables() -> None:
    # The report is a page, and a restore a cluster.
    assert [job for job in JOBS if not job_tables(job)] == ["report", "restore"]
    assert {name for job in JOBS for name in job_tables(job)} <= set(table_names())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("long", "bigint"),
        ({"type": "array", "elementType": "integer", "containsNull": False}, "array&lt;int>"),
        (
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
            "map&lt;string, bigint>",
        ),
        (
            {"type": "struct", "fields": [{"name": "key", "type": "string"}]},
            "struct&lt;key: string>",
        ),
    ],
)
def test_types_are_written_as_sql_has_them(kind: object, text: str) -> None:
    assert type_text(kind) == text
