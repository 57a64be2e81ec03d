"""The report in a real browser: everything drawn, nothing overlaps, nothing is fetched.

`make browser` installs chromium where it can. With KAFKALOG_SCREENSHOTS=DIR the pictures are kept.
"""

import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.browser.chromium import PROGRAM, Chromium, chromium
from tests.support.report.sample_report import HOSTILE
from tests.support.report.sample_report import report as sample_report
from tests.support.repository import EXAMPLES, Unpack

pytestmark = [
    pytest.mark.deep,
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium: `make browser` installs it"),
    pytest.mark.timeout(900),
]

DRAWN = "document.documentElement?.dataset.drawnMs"
SIZES = {"desktop": (1200, 900, False), "phone": (390, 844, True)}
WIDTHS = (420, 1024, 1600)
SOURCES = ("damaged", "shop-week", "kafka44", "kafka39zk", "kafka08", "hostile")
# What takes its place on the page for itself.
BOXES = """
[...document.querySelectorAll(`h1, h2, h3, p, dl, nav, .drawing, figcaption, .table, .strip,
  .strip-head, .ranges, ul.legend, .findings, .remarks, summary, .filter, footer`)]
  .filter((each) => each.checkVisibility()).map((each) => {
  const box = each.getBoundingClientRect();
  return { name: each.id || each.className || each.tagName, left: box.left, right: box.right,
           top: box.top, bottom: box.bottom };
}).filter((box) => box.bottom > box.top)
"""
# What a plot's marks, axis labels and legend reach over its place by, in pixels.
OVERHANGS = """
[...document.querySelectorAll(".drawing")].map((plot) => {
  const place = plot.getBoundingClientRect();
  const parts = [...plot.querySelectorAll(".main-svg text, .legend")];
  const boxes = parts.map((part) => part.getBoundingClientRect()).filter((box) => box.width);
  return Math.max(0, ...boxes.map((box) => {
    return Math.max(place.left - box.left, box.right - place.right,
                    place.top - box.top, box.bottom - place.bottom);
  }));
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def pages(unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages about what there is, and one in which every name is markup."""
    from kafkalog.report.page import write_report

    found = {}
    for name in SOURCES:
        folder = tmp_path_factory.mktemp(f"report-{name}")
        found[name] = folder / "report.html"
        if name == "hostile":
            write_report(sample_report(HOSTILE), str(folder))
            continue
        examples = {"damaged": EXAMPLES / name, "shop-week": EXAMPLES.parent / name}
        if (log_dir := examples.get(name)) is None:
            # The broker of kafka39zk has two.
            log_dir = unpacked(f"{name}.logs") / "log-dirs" / ("*" if name == "kafka39zk" else "")
        arguments = ["report", str(log_dir), "--output-dir", str(folder)]
        assert CliRunner().invoke(kafkalog, arguments).exit_code == 0
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_page_is_drawn_without_complaints_and_requests_and_nothing_overlaps(
    browser: Chromium, pages: dict[str, Path], source: str, size: str
) -> None:
    width, height, is_phone = SIZES[size]
    browser.size(width, height, is_phone=is_phone)
    browser.open(pages[source], until=DRAWN)
    assert browser.complaints() == []
    assert browser.requests() == [pages[source].as_uri()]
    assert browser.value("document.documentElement.scrollWidth") == width
    plots = browser.value("Object.keys(JSON.parse(document.getElementById('figures').text))")
    drawn = "[...document.querySelectorAll('.drawing:has(.main-svg)')]"
    assert browser.value(f"{drawn}.map((each) => each.id).sort()") == sorted(plots)
    assert_apart(browser.value(BOXES), width)
    assert [pixels for pixels in browser.value(OVERHANGS) if pixels > 1] == []
    keep(browser, f"{source}-{size}.png")


def assert_apart(boxes: list[dict[str, Any]], width: int) -> None:
    """No two boxes share more than an edge, and none leaves the page."""
    assert [box for box in boxes if box["left"] < 0 or box["right"] > width + 1] == []
    for one, other in combinations(boxes, 2):
        across = min(one["right"], other["right"]) - max(one["left"], other["left"])
        down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
        assert across <= 1 or down <= 1, (one, other)


def keep(browser: Chromium, name: str) -> None:
    folder = os.environ.get("KAFKALOG_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.screenshot(Path(folder) / name)


@pytest.mark.parametrize("size", SIZES)
def test_a_mark_of_one_batch_is_wide_enough_to_be_seen(
    browser: Chromium, pages: dict[str, Path], size: str
) -> None:
    # F600: of the partition of a GiB that sample_report makes up.
    width, height, is_phone = SIZES[size]
    browser.size(width, height, is_phone=is_phone)
    browser.open(pages["hostile"], until=DRAWN)
    mark = "document.querySelector('.strip .changed').getBoundingClientRect()"
    assert browser.value(f"{mark}.width") >= 4
    strip = "document.querySelector('.strip').getBoundingClientRect()"
    middle = browser.value(f"({mark}.left - {strip}.left) / {strip}.width")
    assert middle == pytest.approx(0.5, abs=0.02)


def test_names_that_are_markup_do_nothing(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.size(1200, 900, is_phone=False)
    browser.open(pages["hostile"], until=DRAWN)
    assert browser.value("document.images.length") == 0
    assert browser.value("document.scripts.length") == 3


def test_on_paper_plots_are_as_wide_as_the_paper(
    browser: Chromium, pages: dict[str, Path], tmp_path: Path
) -> None:
    browser.size(1200, 900, is_phone=False)
    browser.open(pages["kafka44"], until=DRAWN)
    browser.printed(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF-")
    widths = browser.value(
        "[...document.querySelectorAll('.drawing .main-svg')].map((each) => each.clientWidth)"
    )
    assert widths and max(widths) <= 1180


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_colour_schemes(
    browser: Chromium, pages: dict[str, Path], scheme: str
) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", features=[feature])
    for width in WIDTHS:
        browser.size(width, 900, is_phone=width == WIDTHS[0])
        browser.open(pages["shop-week"], until=DRAWN)
        # WCAG 2.2, 1.4.3: 4.5 times as bright, or as dark, as the paper.
        least = min(browser.value(CONTRASTS))
        assert least >= 4.5, least
        keep(browser, f"shop-week-{scheme}-{width}.png")
    browser.call("Emulation.setEmulatedMedia", features=[])


# Of each kind of text, also in plots, with the page's ground: (L1 + 0.05) / (L2 + 0.05).
CONTRASTS = """
(() => {
  const light = (colour) => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const texts = "h1, p, dt, dd, th, td, nav a, figcaption, summary, .status, .findings li";
  const found = [...document.querySelectorAll(texts)].map((each) => getComputedStyle(each).color);
  const plotted = [...document.querySelectorAll(".main-svg text")].map(
    (each) => getComputedStyle(each).fill);
  return [...found, ...plotted].map((colour) => {
    const ink = light(colour);
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  });
})()
"""


def test_a_table_is_sorted_by_a_head_and_filtered(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.size(1200, 900, is_phone=False)
    browser.open(pages["kafka44"], until=DRAWN)
    table = "document.querySelector('#storage table')"
    rows = "[...document.querySelectorAll('#storage tbody tr')]"
    column = f"{rows}.map((row) => row.cells[5].innerText)"
    click = f"{table}.tHead.rows[0].cells[5].querySelector('button').click()"

    def numbers() -> list[int]:
        return [int(text.replace(",", "")) for text in browser.value(column)]

    before = numbers()
    browser.value(click)
    assert numbers() == sorted(before, reverse=True) != before
    browser.value(click)
    assert numbers() == sorted(before)
    field = "document.querySelector('#storage .filter')"
    browser.value(f"{field}.value = 'Shop.TX'; {field}.dispatchEvent(new Event('input'))")
    shown = f"{rows}.filter((row) => !row.hidden).map((row) => row.cells[0].innerText)"
    assert browser.value(shown) == ["shop.tx"]


def test_a_link_unfolds_the_table_that_it_leads_into(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.size(1200, 900, is_phone=False)
    browser.open(pages["kafka44"], until=DRAWN)
    target = "document.getElementById('settings-shop.tx')"
    assert browser.value(f"{target}.checkVisibility()") is False
    browser.value("location.hash = '#settings-shop.tx'")
    wait = "new Promise((done) => setTimeout(() => done(true), 200))"
    assert browser.value(wait) is True
    assert browser.value(f"{target}.checkVisibility()") is True
    top = browser.value(f"{target}.getBoundingClientRect().top")
    assert 0 <= top < 900
    keep(browser, "deep-link.png")
