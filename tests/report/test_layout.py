"""Layout of the pages: the width of the window, cues where a table goes on, and names whose ends can be told apart."""

from __future__ import annotations

import pytest
from report_samples import comparison, make_content, make_regression

from l20fs.report import comparison_page
from l20fs.report.validation import Confusion, Section, validation_page

LONG = [f"probe_set_with_a_long_common_prefix_that_ends_late_{place:05d}_at" for place in range(12)]
CLASSES = [f"squamous cell carcinoma of the {place} with further words" for place in ("lung", "neck", "cervix", "skin")]
UNBROKEN = [f"Patients_of_the_university_hospital_with_the_disease_of_type_{sign}" for sign in "ABCDEF"]
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
    "comparison": lambda: comparison_page(*comparison(), title=LONG[0], answer="All are alike.", n_splits=10),
    "validation": lambda: validation_page(
        [Section("Many", confusion=Confusion(CLASSES, CLASSES, [[5, 1, 0, 0]] * 4))],
        title=LONG[0],
        answer="It holds.",
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
