"""The page as a file: what it asks for, what names can do in it, how large it gets. Rules:
docs/report.md F600, F602, F603, F605."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import plotly.graph_objects
import plotly.offline
import pytest

from kafkalog.format.faults import Fault
from kafkalog.report.contents import Row
from kafkalog.report.damage_section import COLOURINGS, damage_section
from kafkalog.report.findings import remarks, report_findings
from kafkalog.report.page import page
from tests.support.report.sample_report import (
    CELLS,
    HOSTILE,
    damage,
    damaged_log,
    report,
    series,
    status,
)
from tests.support.repository import ROOT

BUNDLE = ROOT / "kafkalog" / "report" / "browser" / "plotly-basic.min.js"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the texts of each kind."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass


def figures(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert found is not None
    values: dict[str, Any] = json.loads(found[1])
    return values


def test_the_page_refers_to_nothing_outside_of_itself() -> None:
    elements = Elements(page(report()))
    references = [
        (tag, name, value)
        for tag, attributes in elements.found
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "data", "action", "poster", "background")
    ]
    assert all(tag == "a" and (value or "").startswith("#") for tag, _, value in references)
    assert not re.search(r"@import|url\(", "".join(elements.texts["style"]))
    (policy,) = [found["content"] for tag, found in elements.found if "http-equiv" in found]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "connect-src" not in policy


def test_names_are_text_whatever_stands_in_them() -> None:
    plain, hostile = (Elements(page(report(name))) for name in ("orders", HOSTILE))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
    assert all("onerror" not in attributes for _, attributes in hostile.found)
    shown = "".join(hostile.texts["bdi"])
    assert "\\u202e" in shown
    assert "\u202e" not in shown
    assert "\0" not in shown


def test_markup_in_names_is_none_for_plotly_either() -> None:
    labels = figures(page(report('<a href="x">')))["storage-topics"]["layout"]["yaxis"]["ticktext"]
    assert labels == ['&lt;a href="x"&gt;']


def test_one_colour_alone_has_its_name_beside_it_too() -> None:
    found = figures(page(report()))
    named = {identity for identity in found if found[identity]["layout"]["showlegend"]}
    assert set(found) - named == {"storage-topics"}, "whose title says what its bars are"


def test_every_figure_is_one_that_plotly_knows() -> None:
    text = page(report())
    found = figures(text)
    places = {attributes.get("id") for _, attributes in Elements(text).found}
    assert set(found) <= places
    assert len(found) == 9
    for figure in found.values():
        plotly.graph_objects.Figure(figure)


def test_the_bundle_is_of_the_major_version_that_the_package_plotly_knows() -> None:
    version = re.search(r"plotly\.js \(basic - minified\) v(\d+)\.", BUNDLE.read_text()[:200])
    assert version is not None
    assert version[1] == plotly.offline.get_plotlyjs_version().partition(".")[0]


def test_the_bundle_is_the_one_that_the_decision_names() -> None:
    decision = (ROOT / "docs" / "decisions" / "0020-a-report-in-one-file.md").read_text()
    assert sha256(BUNDLE.read_bytes()).hexdigest() in decision


def test_one_damaged_batch_in_a_gib_has_a_mark_of_its_own() -> None:
    markup = damage_section(damage(damaged_log())).markup
    marks = re.findall(r'<i class="([a-z-]+)" style="flex-grow:(\d+)"', markup)
    assert marks == [("sound", "80"), ("changed", "1"), ("sound", "79")]
    style = (BUNDLE.parent / "page.css").read_text()
    assert ".strip i:not(.sound, .empty) { min-width: 4px;" in style
    assert all(f".{each.name} {{ background:" in style for each in COLOURINGS)


def test_every_fault_has_a_colour() -> None:
    coloured = {kind for colouring in COLOURINGS for kind in colouring.kinds}
    missing = {fault.label for fault in Fault if fault is not Fault.NONE} - coloured
    assert not missing, f"{missing}: add to COLOURINGS in kafkalog/report/damage_section.py"


def test_of_several_findings_in_a_cell_the_worst_shows() -> None:
    log = damaged_log()
    (mark,) = log.marks
    kinds = ("leader_epoch", "zeros", "checksum")
    marks = [type(mark)(**(vars(mark) | {"kind": kind})) for kind in kinds]
    markup = damage_section(damage(damaged_log(marks=marks))).markup
    assert 'class="no-batch" style="flex-grow:1"' in markup


@pytest.mark.parametrize("cell", [0, CELLS - 1])
def test_marks_at_the_ends_leave_the_strip_as_long_as_it_is(cell: int) -> None:
    log = damaged_log()
    (mark,) = log.marks
    moved = type(mark)(**(vars(mark) | {"cell": cell}))
    markup = damage_section(damage(damaged_log(marks=[moved]))).markup
    assert sum(map(int, re.findall(r"flex-grow:(\d+)", markup))) == CELLS


def test_the_words_say_what_is_wrong_the_worst_first() -> None:
    assert [each.text for each in report_findings(report())] == [
        "1 damaged range in orders-0, 500 B of 1.0 GiB",
        "orders-0 is held back by 21 offsets: a transaction of orders is open since "
        "2023-11-14 22:13:20",
        "group orders is 12,000 records behind since 2023-11-14 23:13:20; its last commit was at "
        "2023-11-14 22:13:20",
        "a timestamp in the future keeps retention from segments of orders",
    ]


def test_more_groups_than_there_is_room_for_are_reported_in_numbers() -> None:
    shown = report()
    assert shown.groups is not None
    totals = Row(groups=31, warned=25, waiting=6)
    many = replace(shown.groups, totals=totals, statuses=[status(f"g{n}") for n in range(20)])
    text = page(replace(shown, groups=many))
    assert "11 groups more." in text
    assert "22 groups more with a warning or an error" in text
    assert "6 groups more with records left to read, without a warning<" in text


def test_groups_that_are_well_and_not_at_the_end_are_reported_too() -> None:
    shown = report()
    assert shown.groups is not None
    told = [status("late"), status("most", "OK", 4400), status("end", "OK", 0)]
    some = replace(
        shown,
        groups=replace(shown.groups, totals=Row(groups=3, warned=1, waiting=1), statuses=told),
    )
    assert remarks(some)[0] == (
        "1 group more with records left to read, without a warning: most has most, 4,400"
    )
    rows = re.findall(r"<tr>(.*?)</tr>", page(some))
    (late,), (most,), (end,) = (
        [row for row in rows if f'id="group-{each}"' in row] for each in ("late", "most", "end")
    )
    assert "late-0</bdi>: no commit since" in late
    assert "most-0</bdi>: no commit since" in most
    assert "no commit since" not in end


def test_files_that_no_broker_serves_are_told_apart() -> None:
    shown = report()
    text = page(shown)
    assert "Not counted: 2 log files with 2.0 KiB that no broker serves any more" in text
    served = replace(shown, storage=replace(shown.storage, unserved=Row(segments=0, bytes=0)))
    assert "Not counted" not in page(served)


def test_a_cluster_without_groups_and_transactions_says_so() -> None:
    shown = report()
    nothing = replace(shown.transactions, outcomes=[], holders=[], held_back=0)
    text = page(replace(shown, groups=None, transactions=nothing))
    assert "No group has committed an offset in these log directories." in text
    assert "There are no transactions in these log directories." in text
    assert not [name for name in figures(text) if name.startswith(("lag", "transaction"))]


def test_the_clusters_metadata_are_topics_with_their_settings_and_brokers() -> None:
    text = page(report())
    assert "2023-11-14 22:13:20: 1 topic, 1 broker with replicas, 3 ACLs." in text
    assert "<summary>Settings of each topic: 1</summary>" in text
    assert '<div><bdi class="name">orders=orders</bdi></div>' in text
    without = page(replace(report(), cluster=None))
    assert "no __cluster_metadata of a KRaft cluster" in without


def test_every_link_leads_to_a_place_of_the_page() -> None:
    for name in ("orders", HOSTILE, "größer als\tnull %41"):
        elements = Elements(page(report(name)))
        links = [each["href"] for tag, each in elements.found if tag == "a"]
        places = [each["id"] for _, each in elements.found if "id" in each]
        assert len(links) > 20 and len(places) == len(set(places))
        assert [link for link in links if (link or "")[1:] not in places] == []


def test_a_finding_about_a_group_leads_to_its_row() -> None:
    places = [each.place for each in report_findings(report("a b"))]
    assert places == ["damage", "transactions", "group-a%20b", "retention"]


def test_lag_that_is_not_known_is_a_gap_in_its_line() -> None:
    shown = report()
    assert shown.groups is not None
    known = replace(shown.groups, series=series("orders", 5, None, 3))
    line = figures(page(replace(shown, groups=known)))["lag-0"]["data"][0]
    assert (line["y"], line["connectgaps"]) == ([5, None, 3], False)
