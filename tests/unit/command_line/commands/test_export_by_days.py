"""Exports day by day, as a schedule runs them, over logs with times of the future. F930 to F932."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from pyarrow import dataset

from kafkalog.command_line.export.run import ExportCommand, run_export
from kafkalog.lake.decoding.decoding_requests import TableDecodingOptions
from kafkalog.lake.formats.targets import TablePlace
from kafkalog.lake.table_options import TableRequest
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.lake.ingest_requests import EVERY_RECORD

HOUR = 3_600_000
DAY = 24 * HOUR
FIRST = 1_767_225_600_000  # 2026-01-01T00:00:00Z
DAYS = 5


class Day(NamedTuple):
    """How many records of orders the table has after a day's run, and what that run printed."""

    records: int
    out: str


class Lake:
    """Logs, the table that exports write of them, and what they printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def export(self, times: Sequence[int], *, now_ms: int, **given: object) -> str:
        """Export logs of records with these times, by these options; return what is printed, with
        a line for the findings."""
        request = replace(EVERY_RECORD, **given)  # type: ignore[arg-type]
        place = TablePlace("parquet", str(self._folder / "tables"))
        settings = ExportCommand(
            (self._logs(times),), place, "FAILFAST", 1, 0, TableDecodingOptions()
        )
        has_findings = run_export(settings, request, TableRequest(), now_ms=now_ms)
        return self._capsys.readouterr().out + f"findings: {has_findings}\n"

    def _logs(self, times: Sequence[int]) -> str:
        path = self._folder / f"logs-{len(times)}"
        if path.exists():
            return str(path)
        directory = LogDirectory(path)
        orders, clicks = directory.topic("orders"), directory.topic("clicks")
        for time_ms in times:
            orders.records([ProducerRecord("k", "v", timestamp_ms=time_ms)])
            clicks.records([("k", "v")])
        return directory.write()

    def offsets(self) -> list[int]:
        """The offsets of partition orders-0 in the table, sorted."""
        path = self._folder / "tables" / "ingested_records"
        if not path.exists():
            return []
        rows = dataset.dataset(path).to_table(columns=["topic", "offset"]).to_pylist()
        return sorted(row["offset"] for row in rows if row["topic"] == "orders")

    def by_days(self, times: Sequence[int], sent: Sequence[int] | None = None) -> list[Day]:
        """Export each day five minutes after its end: with the whole log, or with what was `sent`
        by then, a time for each record."""
        found = []
        for day in range(1, DAYS + 1):
            until = FIRST + day * DAY
            now = until + 300_000
            here = list(times)
            if sent is not None:
                here = [time for time, at in zip(times, sent, strict=True) if at < now]
            out = self.export(here, now_ms=now, until_ms=until)
            found.append(Day(len(self.offsets()), out))
        return found


def usual_times() -> list[int]:
    """A record each hour of five days."""
    return [FIRST + hour * HOUR for hour in range(24 * DAYS)]


@pytest.fixture
def lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lake:
    return Lake(tmp_path, capsys)


def records(days: Sequence[Day]) -> list[int]:
    return [day.records for day in days]


def findings(days: Sequence[Day]) -> list[str]:
    """The lines about times of the future, with the number of the day."""
    return [
        f"{number} {line}"
        for number, day in enumerate(days, start=1)
        for line in day.out.splitlines()
        if "FUTURE_TIME" in line
    ]


@pytest.mark.parametrize("is_growing", [False, True])
def test_a_record_of_the_future_ends_no_day_and_is_named_once(lake: Lake, is_growing: bool) -> None:
    # F930, F932: offset 29 is of the second day by the records around it.
    times, sent = usual_times(), usual_times()
    times.insert(29, FIRST + 26_000 * DAY)
    sent.insert(29, sent[29])
    days = lake.by_days(times, sent if is_growing else None)
    assert records(days) == [24, 49, 73, 97, 121]
    assert lake.offsets() == [*range(121)]
    (line,) = findings(days)
    assert line.startswith("2 FUTURE_TIME: orders-0: offset 29: 2097-03-09T00:00:00.000Z is ")
    assert line.endswith("in the future; this does not end the range, the table has it")
    assert ["findings: True" in day.out for day in days] == [False, True, False, False, False]


def test_a_clock_that_was_two_days_ahead_ends_no_day_where_later_runs_catch_up(lake: Lake) -> None:
    # F931: when these runs come, its time is not ahead of any clock but those of the first days.
    times = usual_times()
    times.insert(29, times[29] + 2 * DAY)
    now = FIRST + 100 * DAY
    for day in range(1, DAYS + 1):
        out = lake.export(times, now_ms=now, until_ms=FIRST + day * DAY)
        assert len(lake.offsets()) == 24 * day + (day > 1)
        told = "offset 29: 2026-01-04T05:00:00.000Z is more than 60 min after most of the batches"
        assert (told in out) is (day == 2)


def test_with_most_of_the_clocks_ahead_the_days_wait_and_lose_nothing(lake: Lake) -> None:
    # F931: 30 records in a row are one day ahead, so that nothing says which are right.
    times = usual_times()
    times[29:29] = [times[29] + DAY + number for number in range(30)]
    days = lake.by_days(times)
    assert records(days)[-1] == len(times) == len(set(lake.offsets()))


def test_a_late_record_is_read_by_the_run_that_reads_its_neighbours(lake: Lake) -> None:
    # F932
    times = usual_times()
    times.insert(60, FIRST)
    days = lake.by_days(times)
    assert records(days) == [24, 48, 73, 97, 121]
    assert findings(days) == []


def test_days_once_more_are_the_same_days(lake: Lake) -> None:
    # F930 and F533: a day begins where the one before ends.
    times = usual_times()
    times.insert(29, FIRST + 26_000 * DAY)
    lake.by_days(times)
    for day in range(1, DAYS + 1):
        bounds = {"from_ms": FIRST + (day - 1) * DAY, "until_ms": FIRST + day * DAY}
        out = lake.export(times, now_ms=FIRST + 9 * DAY, **bounds)
        # All records of the other topic are of the first minutes.
        assert f"read {[24 + 121, 25, 24, 24, 24][day - 1]} offsets of" in out
        assert lake.offsets() == [*range(121)]


def test_a_first_run_that_begins_later_names_the_record_that_it_leaves_out(lake: Lake) -> None:
    # F930
    times = usual_times()
    times.insert(29, FIRST + 26_000 * DAY)
    out = lake.export(times, now_ms=FIRST + 9 * DAY, from_ms=FIRST + 3 * DAY)
    assert lake.offsets() == [*range(73, 121)]
    told = "in the future; the range does not begin there, the table does not have it"
    assert "FUTURE_TIME: orders-0: offset 29: 2097-03-09T00:00:00.000Z is" in out
    assert told in out


def test_a_first_run_after_all_but_the_record_of_the_future_names_it(lake: Lake) -> None:
    # F930
    times = [*usual_times(), FIRST + 26_000 * DAY]
    out = lake.export(times, now_ms=FIRST + 9 * DAY, from_ms=FIRST + 8 * DAY)
    assert lake.offsets() == []
    assert "FUTURE_TIME: orders-0: offset 120: 2097-03-09T00:00:00.000Z is" in out


def test_how_far_ahead_a_record_may_be_is_an_option(lake: Lake) -> None:
    # F930
    times = usual_times()
    times.insert(29, FIRST + 3 * DAY)
    now = FIRST + 2 * DAY
    lake.export(times, now_ms=now, until_ms=now, max_future_ms=2 * DAY)
    assert lake.offsets() == [*range(29)]
    lake.export(times, now_ms=now, until_ms=now, max_future_ms=DAY - 1)
    assert lake.offsets() == [*range(49)]
