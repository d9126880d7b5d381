"""The pages in Chromium: the slider moves everything, downloads equal selection.tsv, no request and no complaint."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from browser import violations
from report_samples import EVIL, comparison, evil_content, for_spreadsheets, make_content, make_regression

from l20fs import L20SelectorCV
from l20fs.data import load_srbct
from l20fs.estimators.selection_table import substitutes
from l20fs.report import Content, Curve, comparison_page
from l20fs.report.page import rise
from l20fs.text import with_interval


def number_of(page, selector):
    return page.locator(f"{selector}:visible").count()


def texts(page, selector):
    """Return the texts of the rows that are seen, in the order in which they are seen."""
    return page.locator(f"{selector}:visible").all_text_contents()


def marker(page, name="marker"):
    """Return the number of features and the score at which a marker stands, by the ticks of the axes."""
    where = page.locator(f"#{name}").evaluate(
        """(marker) => ({
            x: marker.transform.baseVal.consolidate().matrix.e, y: Number(marker.querySelector("circle").getAttribute("cy")),
            ticks: [...marker.ownerSVGElement.querySelectorAll(".tick")].map(
                (tick) => [tick.textContent, Number(tick.getAttribute("x")), Number(tick.getAttribute("y"))]),
        })"""
    )
    ticks = [(text, x, y) for text, x, y in where["ticks"] if re.match(r"-?[\d.]+( %)?$", text)]
    across = [(float(text), x) for text, x, y in ticks if y > 250]
    upwards = [(float(text.removesuffix(" %")), y - 4, text.endswith("%")) for text, x, y in ticks if y <= 250]
    k = np.polyval(np.polyfit([x for _, x in across], [value for value, _ in across], 1), where["x"])
    score = np.polyval(np.polyfit([y for _, y, _ in upwards], [value for value, _, _ in upwards], 1), where["y"])
    return k, score / 100 if upwards[0][2] else score


def check_panel(page, content, k):
    """Everything on the page is what the content says for k."""
    assert number_of(page, "#features tbody tr") == k
    assert number_of(page, "#heatmap tr[data-place]") == k
    places = page.locator("#heatmap tr[data-place]:visible").evaluate_all("rows => rows.map((row) => row.dataset.place)")
    shown = [(heading, [place for place in group if place < k]) for heading, group in content.heat_groups]
    assert [int(place) for place in places] == [place for _, group in shown for place in group]
    assert texts(page, "#heatmap .heading") == [heading for heading, group in shown if group]
    assert page.locator("#k-range").input_value() == page.locator("#k-number").input_value() == str(k)
    assert set(page.locator("[data-k]").all_text_contents()) == {str(k)}
    found_k, score = marker(page)
    assert found_k == pytest.approx(k, abs=0.02)
    assert score == pytest.approx(content.curves[0].mean[k - 1], abs=2e-3)
    counts = [int(text) for text in page.locator("#confusion td").all_text_contents()]
    assert counts == [count for row in content.confusion[k - 1] for count in row]
    assert page.locator(".path-chart .path:not(.out)").count() == min(k, len(content.path.norms))
    curve = content.curves[0]
    mean, lower, upper = (f"{100 * values[k - 1]:.0f}" for values in (curve.mean, curve.lower, curve.upper))
    quoted = f"{mean} % ({lower} to {upper} %)"
    assert page.locator("#k-score").text_content().replace("\xa0", " ").startswith(f"linear {quoted}, KNN-5 ")
    spoken = page.locator("#k-range").get_attribute("aria-valuetext").replace("\xa0", " ")
    assert spoken == f"{k} feature{'s' if k > 1 else ''}, {quoted} accuracy"
    rows = page.locator("#features tbody tr:visible").all()
    for place in {0, k - 1}:
        cells = rows[place].locator("th, td").all_text_contents()
        expected = content.row(k, place)
        assert cells[0] == expected[0]
        place_of_cost = content.header().index("failure_cost")
        expected[place_of_cost] = rise(expected[place_of_cost])
        assert cells[1 + len(content.columns) :] == expected[1 + len(content.columns) :]


# ------------------------------------------------------------------------------------------------------------ the slider


def test_page_opens_at_the_number_of_the_run(show):
    content = make_content()
    page = show(content)
    check_panel(page, content, 13)
    assert not page.locator("#no-slider").is_visible()
    assert not page.locator("#k-back").is_visible()


def test_slider_by_keyboard(show):
    content = make_content()
    page = show(content)
    page.locator("#k-range").focus()
    for key, k in (("ArrowRight", 14), ("ArrowLeft", 13), ("ArrowDown", 12), ("Home", 1), ("End", 40)):
        page.keyboard.press(key)
        check_panel(page, content, k)
    page.locator("#k-back").press("Enter")
    check_panel(page, content, 13)
    assert page.evaluate("document.activeElement.id") == "k-range"


def test_what_the_script_writes_is_what_python_wrote(show):
    """There and back again: the page is as it was before."""
    of_numbers = ["#further-0-text", "#further-0", "#predicted-0", "#residuals-0"]
    of_classes = ["#confusion tbody", "#rates-rows", ".reliability-chart", "#reliability-rows", "#brier", "#log-loss"]
    of_two = ["#roc-line", "#roc-area"]
    for content, further in (
        (make_content(n_classes=2, k=4, k_max=6), of_classes + of_two),
        (evil_content(), of_classes),
        (make_regression(k_max=8, targets=("age", EVIL[0])), [*of_numbers, "#predicted-1", "#residuals-1"]),
    ):
        page = show(content, java_script_enabled=False)
        parts = ["#features tbody", "#strip-title", ".strips", "#k-score", ".chart.score-chart >> nth=0", *further]
        written = [page.locator(part).evaluate("(e) => e.outerHTML") for part in parts]
        other = show(content)
        other.locator("#k-range").press("Home")
        other.locator("#k-back").click()
        for part, expected in zip(parts, written, strict=True):
            found = re.sub(r' data-(place|picked)="\d*"', "", other.locator(part).evaluate("(e) => e.outerHTML"))
            found = re.sub(r"</?button[^>]*>", "", found)  # names that show the values of their feature
            if part == "#features tbody":  # beyond the panel the script has added empty cells
                found, expected = ("".join(re.findall(r"<tr>.*?</tr>", text, re.DOTALL)) for text in (found, expected))
            assert found == expected


def values_of(page, selector, attribute):
    """Return the points of an element of a square picture in the units of its axes, by their ticks."""
    found = page.locator(selector).evaluate(
        """(element, attribute) => ({
            text: element.getAttribute(attribute),
            ticks: [...element.ownerSVGElement.querySelectorAll(".tick")].map(
                (tick) => [tick.textContent, Number(tick.getAttribute("x")), Number(tick.getAttribute("y"))]),
        })""",
        attribute,
    )
    ticks = [(float(text.removesuffix(" %")), x, y) for text, x, y in found["ticks"] if re.match(r"-?[\d.]+( %)?$", text)]
    unit = 100 if any(text.endswith("%") for text, _, _ in found["ticks"]) else 1
    across, upwards = ([tick for tick in ticks if (tick[2] > 290) == is_low] for is_low in (True, False))
    points = np.array([[float(text) for text in pair] for pair in re.findall(r"(-?[\d.]+)[ ,](-?[\d.]+)", found["text"])])
    x = np.polyval(np.polyfit([tick[1] for tick in across], [tick[0] for tick in across], 1), points[:, 0])
    y = np.polyval(np.polyfit([tick[2] - 4 for tick in upwards], [tick[0] for tick in upwards], 1), points[:, 1])
    return np.column_stack([x, y]) / unit


def cells(page, rows):
    return [
        [text.replace("\xa0", " ") for text in row.locator("th, td").all_text_contents()] for row in page.locator(rows).all()
    ]


def test_rates_and_probabilities_follow_the_slider(show):
    content = make_content(n_classes=2, k=6, k_max=12)
    page = show(content)
    for k in (6, 1, 12):
        page.locator("#k-number").fill(str(k))
        page.keyboard.press("Tab")
        assert cells(page, "#rates-rows tr") == [
            [name, str(rate.n_samples), ""]
            + [f"{100 * a:.0f} % ({100 * b:.0f} to {100 * c:.0f} %)" for a, b, c in (rate.sensitivity, rate.specificity)]
            for name, rate in zip(content.classes, content.rates[k - 1], strict=True)
        ]
        found = content.reliability[k - 1]
        assert cells(page, "#reliability-rows tr") == [
            [f"{100 * a:.1f} %", with_interval(b, *ends, is_share=True), str(n)]
            for (a, b, n), ends in zip(found.bins, found.intervals, strict=True)
        ]
        assert page.locator("#brier").text_content() == f"{found.brier:.3f}"
        assert page.locator("#log-loss").text_content() == f"{found.log_loss:.3f}"
        assert np.allclose(values_of(page, "#reliability-line", "points"), [point[:2] for point in found.bins], atol=1e-3)
        circles = re.findall(r"M([\d.]+) [\d.]+a([\d.]+)", page.locator("#reliability-dots").get_attribute("d"))
        centres = [float(left) + float(radius) for left, radius in circles]
        points = page.locator("#reliability-line").get_attribute("points")
        assert np.allclose(centres, [float(point.split(",")[0]) for point in points.split()], atol=0.11)
        areas = np.square([float(radius) for _, radius in circles])
        sizes = [size for _, _, size in found.bins]
        assert np.allclose(areas / areas.max(), np.array(sizes) / max(sizes), atol=0.07)  # the smallest are drawn larger
        assert page.locator("#roc-area").text_content() == "81\xa0% (70 to 90\xa0%)"
        assert np.allclose(values_of(page, "#roc-line", "points"), content.roc[k - 1].points, atol=1e-3)


def test_numbers_follow_the_slider(show):
    content = make_regression(targets=("age", "height"))
    page = show(content)
    for k in (6, 1, 20):
        page.locator("#k-number").fill(str(k))
        page.keyboard.press("Tab")
        for target, measured in enumerate(content.numbers.measured):
            predicted = content.numbers.predicted[k - 1][target]
            found = values_of(page, f"#predicted-{target}", "d")
            wrong = values_of(page, f"#residuals-{target}", "d")
            assert np.allclose(found, np.column_stack([measured, predicted]), atol=0.2) or k == 1
            assert np.allclose(found[:, 0], measured, atol=0.2)
            inside = (wrong[:, 1] > wrong[:, 1].min() + 1) & (
                wrong[:, 1] < wrong[:, 1].max() - 1
            )  # others may be on the edge
            assert np.allclose(wrong[inside, 1], (np.array(measured) - predicted)[inside], atol=0.3)
        k_found, error = marker(page, "further-0")
        assert k_found == pytest.approx(k, abs=0.05)
        assert error == pytest.approx(content.further[0].mean[k - 1], abs=0.05)
        mean, lower, upper = (getattr(content.further[0], name)[k - 1] for name in ("mean", "lower", "upper"))
        assert page.locator("#further-0-text").text_content() == f"{mean:.1f} ({lower:.1f} to {upper:.1f})"
        assert page.locator("#features thead th").last.text_content().endswith("height")
        assert number_of(page, "#heatmap tr[data-place]") == k
    places = page.locator("#heatmap tr[data-place]:visible").evaluate_all("rows => rows.map((row) => row.dataset.place)")
    shown = [(heading, [place for place in group if place < k]) for heading, group in content.heat_groups]
    assert [int(place) for place in places] == [place for _, group in shown for place in group]
    assert texts(page, "#heatmap .heading") == [heading for heading, group in shown if group]
    assert page.locator("#confusion").count() == 0


# --------------------------------------------------------------------------------------------- sort, filter and download


def test_sort_by_every_column_both_ways(show):
    content = make_content(k=13, k_max=20)
    page = show(content)
    frame = pd.DataFrame([content.row(13, place) for place in range(13)], columns=content.header())
    page.locator("#all-columns").check()
    headers = page.locator("#features thead th")
    for column, name in enumerate(frame.columns):
        values = pd.to_numeric(frame[name], errors="coerce")
        if values.isna().any():
            values = frame[name].str.replace(r"\d+", lambda digits: digits[0].zfill(9), regex=True)
        for order in ("ascending", "descending"):
            if name != "rank" or order == "descending":  # the table opens in the order of rank
                headers.nth(column).get_by_role("button").click()
            elif headers.nth(column).get_attribute("aria-sort") is None:
                headers.nth(column).get_by_role("button").press("Enter")
            assert headers.nth(column).get_attribute("aria-sort") == order
            assert page.locator("#features th[aria-sort]").count() == 1
            if name == "could_replace":
                continue  # minus signs and brackets: any order will do
            ordered = values.sort_values(ascending=order == "ascending", kind="stable").index
            assert texts(page, "#features tbody th") == frame.feature[ordered].tolist(), (name, order)


def test_filter_finds_names_and_says_how_many(show):
    page = show(make_content())
    page.locator("#filter").fill("GENE 1")
    names = texts(page, "#features tbody th")
    assert names == [name for name in (f"gene {rank}" for rank in range(1, 14)) if "gene 1" in name]
    assert page.locator("#n-shown").text_content() == f"{len(names)} of 13 shown"
    assert not page.locator("#nothing-found").is_visible()
    page.locator("#filter").fill("no such thing")
    assert texts(page, "#features tbody th") == []
    assert page.locator("#nothing-found").is_visible()
    page.locator("#k-range").press("End")
    assert texts(page, "#features tbody th") == []
    page.locator("#filter").fill("")
    assert number_of(page, "#features tbody tr") == 40
    assert page.locator("#n-shown").text_content() == ""


def downloaded(page, button):
    with page.expect_download() as waiting:
        page.locator(button).click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes().decode()


def make_named():
    """Names that spreadsheets turn into dates and numbers."""
    names = ["SEPT2", "MARCH1", "1-Mar", "00123", "1E5", "-5", "2310009E13", "1007_s_at", '"a" and b', "TRUE", "🧬1", "TP53"]
    substitutes = [[(name, -0.75, 0)] for name in names]
    return make_content(k=3, k_max=len(names), names=names, classes=["1E5", "a", "b", "=c"], substitutes=substitutes)


def make_small():
    return make_content(k=3, k_max=5)


@pytest.mark.parametrize("make", [make_small, evil_content, make_named, make_regression])
def test_downloads_equal_selection_tsv_for_every_k(show, make):
    content = make()
    page = show(content, accept_downloads=True)
    # What a link would download, without as many files: the text and the name at the click.
    page.evaluate(
        """() => {
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { window.made = blob; return make(blob); };
            HTMLAnchorElement.prototype.reallyClick = HTMLAnchorElement.prototype.click;
            HTMLAnchorElement.prototype.click = function () { window.link = this; };
        }"""
    )
    page.locator("#filter").fill("1")  # neither this nor the order changes what is downloaded
    page.locator("#features thead button:visible").last.click()
    page.locator("#k-range").press("Home")
    for k in range(1, content.k_max + 1):
        suffix = "" if k == content.k else f"-{k}"
        buttons = (("#download", "", False), ("#download-safe", "-spreadsheet", True))
        for button, name, is_safe in buttons if k in (1, content.k, content.k_max) else ():
            page.locator(button).dispatch_event("click")
            found = page.evaluate("window.made.arrayBuffer().then((bytes) => [...new Uint8Array(bytes)])")
            plain = content.selection_tsv(k)
            assert bytes(found).decode() == (for_spreadsheets(plain) if is_safe else plain)
            assert page.evaluate("window.link.download") == f"selection{suffix}{name}.tsv"
        page.locator("#k-range").press("ArrowRight")
    with page.expect_download() as waiting:
        page.evaluate("window.link.reallyClick()")
    assert waiting.value.path().read_bytes().decode() == for_spreadsheets(content.selection_tsv(content.k_max))


# --------------------------------------------------------------------------------------------------- hostile and extreme


def test_hostile_names_are_shown_as_text(show):
    """R1: no dialog, no complaint (the fixture looks), nothing but text."""
    content = evil_content()
    page = show(content)
    for k in (1, len(EVIL), 20):
        page.locator("#k-number").fill(str(k))
        page.keyboard.press("Tab")
        assert page.locator("img, main svg[onload]").count() == 0
    names = page.locator("#features tbody th bdi")
    assert names.nth(0).text_content() == EVIL[0]
    assert names.nth(2).text_content() == EVIL[2]
    assert "…" in names.nth(5).text_content()
    assert len(names.nth(5).text_content()) <= 200
    assert names.nth(5).get_attribute("title") == EVIL[5]
    assert page.title().startswith("</script>")


def test_without_javascript_the_page_is_complete(show):
    """R3."""
    content = make_content()
    page = show(content, java_script_enabled=False)
    assert page.locator("#no-slider").is_visible()
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#download").is_visible()
    assert number_of(page, "#features tbody tr") == number_of(page, "#heatmap tr[data-place]") == 13
    assert number_of(page, "#stability tbody tr") == 13
    assert number_of(page, ".chart") == 3
    rows, place_of_cost = page.locator("#features tbody tr:visible").all(), content.header().index("failure_cost")
    for place, row in enumerate(rows):
        cells = content.row(13, place)
        cells[place_of_cost] = rise(cells[place_of_cost])
        assert row.locator("th, td").all_text_contents()[6:] == cells[6:]
    for text in (*content.sentences, *content.warnings):
        assert page.get_by_text(text).is_visible()


def test_one_feature(show):
    page = show(make_content(n_features=1, k=1, k_max=1))
    assert number_of(page, "#features tbody tr") == 1
    page.locator(".score-chart").click()
    assert page.locator("#k-number").input_value() == "1"


def test_nothing_selected(show):
    page = show(make_content(k=0, k_max=5))
    assert page.get_by_text("No feature was selected").is_visible()
    assert number_of(page, "#features tbody tr") == 0
    assert texts(page, "#confusion td") == [""] * 16
    page.locator("#k-more").click()
    assert number_of(page, "#features tbody tr") == 1
    page.locator("#k-back").click()
    assert number_of(page, "#features tbody tr") == 0
    assert page.locator("#marker").get_attribute("visibility") == "hidden"


# ---------------------------------------------------------------------------------------------------- for every reader


PAGES = {
    "two classes": lambda: make_content(n_classes=2, k=6, k_max=8),
    "regression": lambda: make_regression(k=4, k_max=6, targets=("age", "body mass index")),
    "hostile": evil_content,
    "comparison": lambda: comparison_page(
        *comparison(), title="toy", answer="None", n_splits=10, warnings=["Beware"], sentences=["Done"]
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_for_every_reader_and_a_narrow_screen(show, name):
    content = PAGES[name]()
    page = show(content)
    for details in page.locator("details summary").all():
        details.click()
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page = show(content, viewport={"width": 375, "height": 800}, java_script_enabled=False)
    assert page.locator("html").bounding_box()["width"] <= 375


def test_everything_is_reached_by_keyboard(show):
    page = show(make_content())
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate("document.activeElement.id || document.activeElement.className || document.activeElement.tagName")
        )
    assert seen[0] == "skip"
    wanted = ["k-less", "k-range", "k-more", "k-number", "filter", "download", "download-safe", "scroll", "SUMMARY"]
    assert [name for name in dict.fromkeys(seen) if name in wanted] == wanted
    levels = [int(element.evaluate("(e) => e.tagName[1]")) for element in page.locator("h1, h2, h3").all()]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


# --------------------------------------------------------------------------------------------------------- the other pages


def test_methods_are_sorted(show):
    page = show(comparison_page(*comparison(), title="toy", answer="", n_splits=10))
    accuracy = page.locator("#methods thead button", has_text="Accuracy")
    accuracy.click()
    assert texts(page, "#methods tbody tr td:nth-child(3)")[:2] == ["90.0\xa0%\xa0±\xa01.0\xa0%", "95.3\xa0%"]
    accuracy.click()
    found = texts(page, "#methods tbody tr td:nth-child(3)")
    assert found == ["95.3\xa0%", "90.0\xa0%\xa0±\xa01.0\xa0%", ""]  # what is not known stays last


# ---------------------------------------------------------------------------------------------------------- a real report


def real_content(k_max=30):
    """Return the report of L20SelectorCV on the built-in tumours."""
    data = load_srbct()
    names = np.array(data.feature_names)
    frame = pd.DataFrame(data.data, columns=names)
    selector = L20SelectorCV("1se", sizes=range(1, k_max + 1)).fit(frame, data.target)
    order = np.argsort(selector.ranking_, kind="stable")[:k_max]
    ranks = {feature: rank for rank, feature in enumerate(order, 1)}
    found = [[] for _ in order]
    for place, feature in enumerate(order):
        for _, other, correlation in zip(*substitutes(frame, [feature], 8), strict=True):
            found[place].append((str(names[other]), round(float(correlation), 4), ranks.get(other, 0)))
    z = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy()[:, order]
    classes, sizes = np.unique(data.target, return_counts=True)
    panels = [selector.path_.refit(size).coef[:, order[:size]].T for size in range(1, k_max + 1)]
    results = selector.cv_results_
    best = results["mean_test_score"][selector.best_index_]
    return Content(
        title="srbct",
        answer=f"{selector.n_features_} of {frame.shape[1]} features tell {len(classes)} classes apart: {100 * best:.1f} % "
        "of samples right in 5-fold cross-validation.",
        k=int(selector.n_features_),
        k_rule="smallest within one standard error of the best",
        k_max=k_max,
        n_samples=len(frame),
        n_features=frame.shape[1],
        classes=[str(name) for name in classes],
        class_sizes=sizes.tolist(),
        chance=float(sizes.max() / len(frame)),
        curves=[Curve("linear", results["mean_test_score"].tolist(), results["standard_error"].tolist())],
        features=[str(name) for name in names[order]],
        columns={
            "rank": [str(rank) for rank in range(1, k_max + 1)],
            "score": [f"{v:.10g}" for v in selector.scores_[order]],
        },
        substitutes=found,
        heat=[[round(float(z[data.target == name, place].mean()), 2) for name in classes] for place in range(k_max)],
        coef=[[[f"{weight:.4g}" for weight in row] for row in panel] for panel in panels],
    )


def test_a_real_report(show):
    content = real_content()
    page = show(content, accept_downloads=True)
    assert texts(page, "#features tbody th bdi") == content.features[: content.k]
    assert downloaded(page, "#download")[1] == content.selection_tsv(content.k)
    page.locator("#k-range").press("End")
    assert number_of(page, "#heatmap tr[data-place]") == content.k_max
    assert downloaded(page, "#download")[1] == content.selection_tsv(content.k_max)


def test_near_optimal_panels(show):
    content = make_content()
    page = show(content)
    atlas = page.locator("#atlas")
    assert atlas.locator("li").all_inner_texts() == content.atlas.sentences
    assert atlas.locator("p.names bdi").all_inner_texts() == content.atlas.core
    rows = atlas.locator("#exchanges tbody tr")
    assert rows.locator("th").all_inner_texts() == content.atlas.optional
    assert rows.nth(3).locator("td").last.inner_text() == ", ".join(content.atlas.replaced_by[3])
    shares = rows.locator("td.number").all_inner_texts()
    assert (shares[0], shares[-1]) == ("99 %", "< 1 %")
    assert "7 more are in fewer panels and not shown." in atlas.inner_text()
    assert show(make_content(atlas=None)).locator("#atlas").count() == 0
