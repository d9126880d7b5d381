"""Strip plots: what Python draws, and what a click shows."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from report_samples import make_content, make_regression

from l20fs.report import Strips, render
from l20fs.report.strips import JITTER, strip_plots, target_ticks


def drawn(page):
    """Return the dots and medians of the lines, and the ticks, as the page shows them."""
    lines = page.locator(".strips tbody tr").evaluate_all(
        """(rows) => rows.map((row) => [
            [...row.querySelectorAll("circle")].map((dot) => [dot.getAttribute("cx"), Number(dot.getAttribute("cy"))]),
            [...row.querySelectorAll(".median")].map((line) => line.getAttribute("x1")),
            row.cells[2]?.textContent,
        ])"""
    )
    ticks = page.locator("#strip-ticks text").evaluate_all("(all) => all.map((e) => [e.getAttribute('x'), e.textContent])")
    return lines, ticks


def expected(content, place):
    plots = strip_plots(content)
    feature, heights = plots["features"][place], plots["heights"]
    lines = []
    for line, dots in enumerate(feature["dots"]):
        median = feature["medians"][line] if feature["medians"] else None
        shown = [[f"{x / 10:g}%", heights[i % len(heights)]] for i, x in enumerate(dots) if x is not None]
        text = None if not feature["medians"] else median[1] if median else ""
        lines.append([shown, [f"{median[0] / 10:g}%"] if median else [], text])
    return lines, [[f"{x / 10:g}%", text] for x, text in feature["ticks"]]


def check(page, content, place):
    assert drawn(page) == expected(content, place)
    level = content.columns["level"][place]
    assert page.locator("#strip-title").text_content() == content.features[place] + (f": {level}" if level else "")


def test_positions_are_linear_in_the_values():
    content = make_content(k_max=3, k=2)
    for feature, rows in zip(strip_plots(content)["features"], content.strips.values, strict=True):
        values, dots = ([x for row in part for x in row] for part in (rows, feature["dots"]))
        slope, start = np.polyfit(values, dots, 1)
        assert np.abs(start + slope * np.array(values) - dots).max() <= 0.6  # thousandths of the width
        assert (min(dots), max(dots)) == (30, 970)
        for x, text in feature["ticks"]:
            assert start + slope * float(text) == pytest.approx(x, abs=0.6)


def test_upwards_is_the_target():
    content = make_regression()
    heights = strip_plots(content)["heights"]
    slope, start = np.polyfit(content.strips.targets, heights, 1)
    assert slope < 0.0
    assert np.abs(start + slope * np.array(content.strips.targets) - heights).max() <= 0.6  # pixels
    for y, text in target_ticks(content):
        assert start + slope * float(text) == pytest.approx(y, abs=0.6)


def test_one_value_is_in_the_middle_and_nothing_is_drawn_of_none():
    content = make_content(k_max=1, k=1)
    one = strip_plots(replace(content, strips=Strips([[[2.0], [], [], []]], [[2.0, None, None, None]], [])))
    assert one["features"][0] == {
        "dots": [[500], [], [], []], "medians": [[500, "2"], None, None, None], "ticks": [[500, "2"]]
    }  # fmt: skip
    assert one["heights"] == list(JITTER)
    assert strip_plots(replace(content, strips=None)) is None
    assert 'id="strips"' not in render(replace(content, strips=None))


@pytest.mark.parametrize("make", [make_content, make_regression])
def test_the_first_feature_is_shown_without_javascript(show, make):
    content = make()
    page = show(content, java_script_enabled=False)
    check(page, content, 0)
    assert not page.locator("#strip-feature").is_visible()


@pytest.mark.parametrize("make", [make_content, make_regression])
def test_the_feature_that_is_clicked_is_shown(show, make):
    content = make()
    page = show(content)
    check(page, content, 0)
    page.locator("#features tbody tr").nth(4).locator(".pick").click()
    check(page, content, 4)
    assert page.evaluate("document.activeElement.id") == "strip-feature"
    page.keyboard.press("ArrowDown")
    check(page, content, 5)
    page.locator("#heatmap tr[data-place='2'] td").first.click()
    check(page, content, 2)
    assert page.locator("#strip-feature").input_value() == "2"
    picked = page.locator("[data-picked]").evaluate_all("(rows) => rows.map((row) => row.dataset.place)")
    assert picked == ["2", "2"]
    page.locator("#features tbody tr").nth(1).locator(".pick").press("Enter")
    check(page, content, 1)


def test_the_picture_keeps_to_the_selection_and_to_what_the_page_holds(show):
    content = make_content(k=8, k_max=40)
    assert len(content.strips.values) == 30
    page = show(content)
    assert page.locator("#strip-feature option:not([hidden])").count() == 8
    page.locator("#features tbody tr").nth(7).locator(".pick").click()
    page.locator("#k-range").press("ArrowLeft")
    check(page, content, 0)
    page.locator("#k-range").press("End")
    assert page.locator("#strip-feature option:not([hidden])").count() == page.locator(".pick").count() == 30
    page.locator("#heatmap tr[data-place='35'] td").first.click()  # has no values
    check(page, content, 0)
    assert page.get_by_text("values of the first 30 features only").is_visible()


def test_sorting_does_not_mix_up_the_features(show):
    content = make_content(k=8, k_max=12)
    page = show(content)
    page.locator("#features thead button").nth(1).click()  # by rank, the last first
    row = page.locator("#features tbody tr:visible").first
    name = row.locator("th").text_content()
    row.locator(".pick").click()
    assert re.match(r"gene \d+$", name)
    check(page, content, content.features.index(name))
