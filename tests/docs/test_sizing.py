"""The sizing in docs/operations.md comes from the figures in docs/benchmarks.md."""

from benchmarks.sizing import BENCHMARKS, OPERATIONS, default_tables, measured

PAGE = """
## All jobs

| input | what | s | processor s | MB/s | peak MiB |
|---|---|---|---|---|---|
| records, 3,600 MB | `kafkalog check` | 34.3 | 21.6 | 71 | 430 |
| | validate-checksums | 52.2 | 36 | 47 | 2,048 |
| commits, 360 MB | consumer-lag | 42.5 | 3.6 | 10 | 1,024 |

## Others
"""


def test_figures_are_those_of_the_table() -> None:
    found = {each.job: each for each in measured(PAGE)}
    assert set(found) == {"validate-checksums", "consumer-lag"}
    # 36 seconds for 3.6 GB are 10,000 seconds for a TB.
    assert found["validate-checksums"].hours_per_byte * 10**12 * 3600 == 10_000
    assert found["consumer-lag"].hours_per_byte == found["validate-checksums"].hours_per_byte
    assert found["consumer-lag"].peak_mib == 1024


def test_the_page_has_the_tables_of_the_figures_that_are_measured() -> None:
    """If not: python -m benchmarks.sizing --write."""
    assert len(measured(BENCHMARKS.read_text())) == 4
    page = OPERATIONS.read_text()
    for table in default_tables():
        assert table in page
