"""Layout of the pages: the width of the window, cues where a table goes on, and names whose ends can be told apart."""

from __future__ import annotations

import pytest
from browser import violations
from report_samples import comparison, make_content, make_regression

from l20fs.report import Exhibit, comparison_page, render, reproduction_page
from l20fs.report.document import Cell, Table
from l20fs.report.validation import Confusion, Section, validation_page
from l20fs.text import parted, shorten

LONG = [f"probe_set_with_a_long_common_prefix_that_ends_late_{place:05d}_at" for place in range(12)]
CLASSES = [f"squamous cell carcinoma of the {place} with further words" for place in ("lung", "neck", "cervix", "skin")]
UNBROKEN = [f"Patients_of_the_university_hospital_with_the_disease_of_type_{sign}" for sign in "ABCDEF"]
WIDE = Table("Wide", tuple(f"a column of numbers {i}" for i in range(30)), ((Cell("0.12345"),) * 30,), (True,) * 30)
DESK = {"width": 1300, "height": 900}


def others():
    return [[(LONG[(place + step) % 12], 0.8, 0) for step in (1, 2, 3)] for place in range(12)]


def long_names(**changes):
    return make_content(k=6, k_max=12, names=LONG, classes=CLASSES, substitutes=others(), title=LONG[0], **changes)


PAGES = {
    "long names": long_names,
    "long words": lambda: make_content(n_classes=6, k=6, k_max=12, names=LONG, classes=UNBROKEN, substitutes=others()),
    "two classes": lambda: make_content(n_classes=2, k=6, k_max=8),
    "50 classes": lambda: make_content(n_classes=50, k=6, k_max=8, n_samples=400),
    "regression": lambda: make_regression(k=4, k_max=6, names=LONG[:6]),
    "comparison": lambda: comparison_page(*comparison(), title=LONG[0], answer="All are alike."),
    "validation": lambda: validation_page(
        [Section("Many", confusion=Confusion(CLASSES, CLASSES, [[5, 1, 0, 0]] * 4))], title=LONG[0], answer="It holds."
    ),
}


def overflowing(page):
    """Return the names of the regions that scroll."""
    return page.locator(".scroll").evaluate_all(
        "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.getAttribute('aria-label'))"
    )


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_at_1300_pixels_nor_wider_than_a_phone_or_paper(show, name):
    page = show(PAGES[name](), viewport=DESK)
    assert overflowing(page) == []
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.set_viewport_size({"width": 688, "height": 900})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 688


def is_whole(page, selector):
    """Return for each long name whether the middle of it is seen."""
    return page.locator(f"{selector} .cut > span").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect().width > 2)"
    )


def test_long_names_show_their_ends_and_all_of_it_where_there_is_room(show):
    page = show(long_names(), viewport=DESK)
    names = page.locator("#features tbody tr:visible th bdi")
    for place, name in enumerate(LONG[:6]):
        assert names.nth(place).text_content() == name  # for a search in the page, a copy, and a screen reader
        assert names.nth(place).get_attribute("title") == name
    rows = "#features tbody tr:not([hidden]) th"
    assert is_whole(page, rows) == [False] * 6
    before = names.first.evaluate("(e) => getComputedStyle(e.querySelector('.cut'), '::before').content")
    assert before.startswith('"…"')
    assert all(is_whole(page, "#confusion thead"))  # a header has several lines
    page.locator(".scroll").first.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert is_whole(page, rows) == [True] * 6  # a region that has the focus of the keyboard
    page.set_viewport_size({"width": 375, "height": 800})
    page.locator("#filter").focus()
    assert is_whole(page, rows) == [True] * 6
    page.set_viewport_size(DESK)
    assert is_whole(page, rows) == [False] * 6
    page.emulate_media(media="print")
    assert is_whole(page, rows) == [True] * 6


@pytest.mark.parametrize("limit", [9, 20, 28])
def test_a_name_is_parted_as_it_is_shortened(limit):
    for name in (LONG[3], "short", "two  words\tand more of them, to be sure", "", "a" * limit, "b" * (limit + 1)):
        first, middle, last = parted(name, limit)
        assert first + middle + last == " ".join(name.split())
        assert shorten(name, limit) == (f"{first}…{last}" if middle else first)
        assert len(shorten(name, limit)) <= limit
        assert len(last) >= (limit - 1) // 2 or not middle


def test_names_that_agree_at_both_ends_are_told_apart(show):
    """In what Python writes and in what the script does; and short ones are not broken on a phone."""
    classes = [f"Cell type number {i} of the fly atlas" for i in range(10, 14)]
    content = make_content(k=3, k_max=6, names=[f"gene{i:04d}" for i in range(6)], classes=classes)
    page = show(content, viewport=DESK)
    page.locator("#k-more").click()
    seen = "(all) => all.map((e) => [...e.childNodes].map((n) => n.className === 'cut' ? '…' : n.textContent).join(''))"
    for part in (".facts .class bdi", ".strips tbody bdi", "#rates-rows bdi"):
        assert len(set(page.locator(part).evaluate_all(seen))) == 4
    page.set_viewport_size({"width": 375, "height": 800})
    names = page.locator("#heatmap tbody tr:not([hidden]) th:not([colspan]) bdi")
    assert names.evaluate_all("(all) => all.map((e) => e.getClientRects().length)") == [1] * 4


def test_a_shadow_shows_where_a_table_goes_on(show):
    """Above the table, until its end is reached; the region can be scrolled with keys."""
    page = show(
        validation_page([Section("Wide", "", (WIDE,))], title="toy", answer="It holds."),
        viewport=DESK,
    )
    region = page.locator(".scroll")
    shade = """(e) => new Promise((tell) => requestAnimationFrame(() => requestAnimationFrame(
        () => tell(Number(getComputedStyle(e, "::after").opacity)))))"""
    assert overflowing(page) == ["Wide, table 1"]
    assert region.evaluate(shade) == 1
    assert region.get_attribute("tabindex") == "0"
    region.evaluate("(e) => { e.scrollLeft = e.scrollWidth; }")
    assert region.evaluate(shade) < 0.05
    page.set_viewport_size({"width": 6000, "height": 900})
    assert region.evaluate(shade) == 0
    assert violations(page) == []


def test_many_weights_are_shown_if_asked_for(show):
    page = show(make_content(n_classes=12, k=2, k_max=3))
    weights = page.locator("#features thead .coef")
    assert weights.count() == 12
    assert not weights.first.is_visible()
    page.get_by_label("Show technical columns and weights, too").check()
    assert weights.first.is_visible()
    assert 'class="coef technical"' not in render(make_content(n_classes=6, k=2, k_max=3))


def test_the_slider_stays_where_it_is_while_it_is_moved(show):
    page = show(make_content(), viewport=DESK)
    boxes = [page.locator("#k-range").bounding_box()]
    for key in ("Home", "ArrowRight", "End"):
        page.locator("#k-range").press(key)
        boxes.append(page.locator("#k-range").bounding_box())
    assert boxes == boxes[:1] * 4


def test_a_page_that_cannot_predict_says_so():
    content = make_content(k=2, k_max=3, panel=None)
    assert "This page cannot predict new samples; l20fs predict can" in render(content)
    groups = make_content(k=2, k_max=3, panel=None, columns=content.columns | {"members": ["a, b", "c", "d"]})
    assert "cannot predict new samples, since features are selected in groups here; l20fs predict can" in render(groups)
    assert "cannot predict new samples" not in render(make_content(k=2, k_max=3))


def test_a_reproduction_uses_the_width_too(show):
    table = Table("Wide", WIDE.header[:5], (WIDE.rows[0][:5],), (True,) * 5)
    page = show(reproduction_page([Exhibit("a table", (), table=table)]), viewport=DESK)
    assert page.locator("main").bounding_box()["width"] > 1200
    assert overflowing(page) == []
