"""The pages in Chromium: the slider moves everything, figures and tables are downloaded, and nothing is asked for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from browser import violations
from cli_samples import planted, write

from l20fs import Panel
from l20fs.cli import run

PAGE = "report.html"


def names(page):
    return page.locator("#features tbody tr:visible th").all_text_contents()


def heat_names(page):
    return page.locator("#heatmap .row:not([display]) > text").all_text_contents()


def move(page, k):
    page.locator("#k-number").fill(str(k))
    page.keyboard.press("Tab")


def download(page, click):
    with page.expect_download() as found:
        click()
    return found.value.suggested_filename, found.value.path().read_text(encoding="utf-8")


def test_the_slider_moves_everything(folder, show):
    page = show(folder / PAGE)
    table = pd.read_csv(folder / "features.tsv", sep="\t")
    assert names(page) == table["feature"].tolist()
    quoted = page.locator("#k-score").text_content()
    assert quoted in page.locator("h1").text_content()
    assert page.locator(".of-k:visible").count() > 0
    for k in (3, 9, 6):
        move(page, k)
        assert len(names(page)) == k
        assert sorted(heat_names(page)) == sorted(names(page))
        assert page.locator("#k-range").input_value() == str(k)
        assert (page.locator(".of-k:visible").count() > 0) == (k == 6), "what holds for the selected number only"
        rows = page.locator("#confusion tbody tr").all()
        shares = [[int(text[:-2]) for text in row.locator("td").all_text_contents()] for row in rows]
        assert all(98 <= sum(row) <= 102 for row in shares)
    assert names(page) == table["feature"].tolist()
    assert page.locator("#k-score").text_content() == quoted


def test_the_keyboard_is_enough(folder, show):
    page = show(folder / PAGE)
    page.locator("#k-range").focus()
    for key, k in (("ArrowRight", 7), ("ArrowLeft", 6), ("ArrowLeft", 5)):
        page.keyboard.press(key)
        assert len(names(page)) == k
        assert page.locator("#k-range").get_attribute("aria-valuetext").startswith(f"{k} features, accuracy ")
    page.locator("#k-back").press("Enter")
    assert page.evaluate("document.activeElement.id") == "k-range"
    shown = page.locator(".strip:visible").count()
    page.locator("#features .pick").first.press("Enter")
    assert page.locator(".strip:visible").count() == shown - 1
    page.locator("#features .pick").first.press("Enter")
    assert page.locator(".strip:visible").count() == shown


def test_sorting_the_filter_and_hidden_weights(folder, show):
    page = show(folder / PAGE)
    before = names(page)
    page.locator("#features thead button").nth(0).click()
    assert names(page) == sorted(before, key=lambda name: int(name[1:]))
    page.locator("#features thead button").nth(1).click()
    assert names(page) == before
    page.locator("#filter").fill(before[2])
    assert before[2] in names(page)
    assert len(names(page)) < len(before)
    page.locator("#filter").fill("no such feature")
    assert page.locator("#nothing-found").is_visible()
    page.locator("#filter").fill("")
    assert page.locator(".weight:visible").count() == 0
    page.locator("#weights").check()
    assert page.locator("thead .weight:visible").count() == 3


def test_downloads(folder, show):
    page = show(folder / PAGE)
    name, text = download(page, page.locator("#download").click)
    assert name == "features-6.tsv"
    lines = [line.split("\t") for line in text.splitlines()]
    assert [line[0] for line in lines[1:]] == names(page)
    for figure in page.locator(".figure:visible").all():
        name, text = download(page, figure.locator(".save").click)
        root = ET.fromstring(text)
        assert name.endswith(".svg")
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r'class=|var\(|display="none"', text)


def test_the_panel_of_the_page_is_the_panel(folder, show):
    page, panel = show(folder / PAGE), Panel.load(folder / "panel.json")
    frame = planted(40, seed=3).iloc[:12]
    for k in (6, 2, 10):
        move(page, k)
        features = panel.features_for(k)
        rows = ["\t".join(["sample", *features[::-1], "unused"])]
        rows += ["\t".join([f"s{i}", *map(str, row), "1"]) for i, row in enumerate(frame[features[::-1]].to_numpy())]
        page.locator("#samples").fill("\n".join(rows))
        assert page.locator("#predictions .decided").all_text_contents() == panel.predict(frame, k=k).tolist()
        shares = page.locator("#predictions td.number").evaluate_all("all => all.map((cell) => Number(cell.dataset.value))")
        np.testing.assert_allclose(np.reshape(shares, (12, 3)), panel.predict_proba(frame, k=k), atol=1e-9)


def test_pasted_values_are_refused_with_a_reason(folder, show):
    page, features = show(folder / PAGE), Panel.load(folder / "panel.json").features_for()
    line = ",".join(features)
    for text, said in (
        ("1;2;3", "3 values for 6 features"),
        (f"{line}\n1,2,3,4,5,x", "is no number: x"),
        (f"{line}\n1,2,3,4,5,", "has no value"),
        (",".join(features[:-1]) + "\n1,2,3,4,5", f"Columns are missing: {features[-1]}"),
        (f"{line}\n1,2,3,4,5,1e9", "Outside the training range"),
    ):
        page.locator("#samples").fill(text)
        assert said in page.locator("section", has=page.locator("#samples")).text_content()
    page.locator("#sample-clear").click()
    page.locator("#sample-names").click()
    assert page.locator("#samples").input_value() == "\t".join(features) + "\n"


def test_complete_without_its_script(folder, numbers, show):
    for place in (folder, numbers):
        page = show(place / PAGE, java_script_enabled=False)
        table = pd.read_csv(place / "features.tsv", sep="\t")
        assert names(page) == table["feature"].tolist()
        assert page.locator("#controls").is_hidden()
        assert page.locator("#methods-text").is_visible()
        assert page.locator(".strip:visible").count() == min(6, len(table))


def test_numbers_and_the_slider(numbers, show):
    page, panel = show(numbers / PAGE), Panel.load(numbers / "panel.json")
    assert page.locator("h1").text_content().startswith("2 of 9 features: R²")
    assert page.locator("[data-file=predicted] svg").is_visible()
    move(page, 4)
    assert len(names(page)) == 4
    features = panel.features_for(4)
    page.locator("#samples").fill("\t".join(features) + "\n0.5\t-1\t0.25\t2")
    value = page.locator("#predictions td.number").first.evaluate("cell => Number(cell.dataset.value)")
    frame = pd.DataFrame([[0.5, -1, 0.25, 2]], columns=features)
    assert value == pytest.approx(float(panel.predict(frame, k=4)[0]), abs=1e-9)


def test_hostile_names_are_text(evil, show):
    page = show(evil / PAGE)
    table = pd.read_csv(evil / "features.tsv", sep="\t", keep_default_na=False)
    shown = page.locator("#features tbody tr:visible th bdi").evaluate_all(
        "all => all.map((one) => one.title || one.textContent)"
    )
    assert [text[:100] for text in shown] == [" ".join(name.split())[:100] for name in table["feature"]]
    assert page.locator("img, b").count() == 0
    move(page, 2)
    page.locator("#sample-names").click()
    page.locator("#samples").type("1\t2")
    assert page.locator("#predictions tbody tr").count() == 1


@pytest.mark.parametrize("kind", ["folder", "numbers", "evil"])
def test_axe_finds_nothing(kind, show, request):
    page = show(request.getfixturevalue(kind) / PAGE)
    assert violations(page) == []
    for width in (360, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 1


def test_other_pages_are_clean(folder, show, tmp_path):
    cohort = write(planted(40, seed=2), tmp_path / "cohort.tsv")
    assert run(["validate", str(folder), cohort, "--target", "type", "-o", str(tmp_path / "v")]) == 0
    few = ["--methods", "FisherScore,mRMR", "--sizes", "2,5", "--config", "search.splits=2"]
    assert run(["compare", cohort, "--target", "type", *few, "-o", str(tmp_path / "c")]) == 0
    for file in ("v/validation.html", "c/comparison.html"):
        page = show(tmp_path / file)
        assert violations(page) == []
        _, text = download(page, page.locator(".figure .save").first.click)
        assert text.startswith("<svg")
