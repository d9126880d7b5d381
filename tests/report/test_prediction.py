"""The field of the page that predicts: the same numbers as NumPy, what can be pasted, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import violations
from cli_samples import write_table
from report_samples import EVIL, evil_content, make_content, make_panel, make_regression

from l20fs import Panel
from l20fs.cli import run
from l20fs.prediction.calibration import Calibration
from l20fs.prediction.linear_rule import LinearRule, decide


def paste(page, text):
    """Put a text into the field as the clipboard would."""
    page.locator("#samples").evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", text
    )


def set_k(page, k):
    page.locator("#k-number").fill(str(k))
    page.keyboard.press("Tab")


def shown(page):
    """Return names, classes and numbers of the predicted samples, numbers in full precision."""
    rows = page.locator("#predictions tbody tr").evaluate_all(
        """(rows) => rows.map((row) => ({
            name: row.cells[0].textContent, decided: row.querySelector(".decided")?.textContent,
            numbers: [...row.querySelectorAll("[data-value]")].map((cell) => Number(cell.dataset.value)),
            texts: [...row.querySelectorAll("[data-value]")].map((cell) => cell.textContent),
            note: row.querySelector(".beware").textContent,
        }))"""
    )
    return rows, np.array([row["numbers"] for row in rows if row["numbers"]])


def status(page):
    return page.locator("#prediction-status").text_content()


def expected(content, k, X):
    """Return classes and probabilities, or numbers, by the functions that panels predict with."""
    panel = content.panel
    X = np.log1p(X) if panel.transform == "log1p" else X
    intercept = np.array([-np.inf if value is None else value for value in panel.intercept[k - 1]])
    values = LinearRule(np.arange(k), np.array(panel.weights[k - 1]), intercept).apply(X[:, :k])
    if content.task == "regression":
        return None, values
    calibration = Calibration(panel.slope[k - 1], panel.doubt[k - 1])
    return [content.classes[code] for code in decide(values)], calibration.probabilities(values)


def table(names, X, separator="\t", samples=None):
    lines = [separator.join(([""] if samples else []) + list(names))]
    lines += [separator.join(([samples[i]] if samples else []) + [repr(float(x)) for x in row]) for i, row in enumerate(X)]
    return "\n".join(lines)


def with_lost_class(place):
    """A panel of three classes, one of which is never predicted."""
    panel = make_panel(12, 3)
    rows = [[None if c == place else value for c, value in enumerate(row)] for row in panel.intercept]
    return make_content(n_classes=3, k=4, k_max=12, panel=replace(panel, intercept=rows))


CONTENTS = {
    "2 classes": lambda: make_content(n_classes=2, k=5, k_max=30),
    "3 classes": lambda: make_content(n_classes=3, k=5, k_max=12),
    "4 classes": lambda: make_content(n_classes=4, k=13, k_max=40),
    "first class lost": lambda: with_lost_class(0),
    "last class lost": lambda: with_lost_class(2),
    "log1p": lambda: make_content(n_classes=4, k=5, k_max=30, panel=make_panel(30, 4, transform="log1p")),
    "regression": make_regression,
    "2 targets": lambda: make_regression(targets=("age", "height")),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_the_numbers_are_those_of_numpy(show, name):
    """To 1e-9 at several k, whatever the order of the columns."""
    content = CONTENTS[name]()
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(5, 4, (7, content.k_max))) * 10.0 ** rng.integers(-3, 3, content.k_max)
    order = rng.permutation(content.k_max)
    samples = [f"s{i}" for i in range(7)]
    page = show(content)
    paste(page, table([content.features[j] for j in order], X[:, order], samples=samples))
    for k in (content.k, 1, 2, content.k_max):
        set_k(page, k)
        rows, numbers = shown(page)
        classes, wanted = expected(content, k, X)
        assert [row["name"] for row in rows] == samples
        assert np.allclose(numbers, wanted, rtol=1e-12, atol=1e-9)
        assert status(page) == f"7 of 7 samples predicted with {k} feature{'s' if k > 1 else ''}."
        if classes:
            assert [row["decided"] for row in rows] == classes
            assert rows[0]["texts"] == [f"{100 * share:.1f}\xa0%" for share in numbers[0]]


def targets_of(kind, X, rng):
    """Return labels of 2 or 4 classes, or numbers, that depend on the first columns."""
    value = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=len(X))
    return (
        40.0 + 9.0 * value if kind == "numbers" else np.array(list("abcd"))[np.argsort(np.argsort(value)) * kind // len(X)]
    )


@pytest.mark.parametrize(
    ("kind", "options"), [(2, []), (4, ["--log"]), ("numbers", ["--task", "regression"])], ids=["2", "4", "numbers"]
)
def test_the_page_of_select_predicts_as_its_panel(show, tmp_path, kind, options):
    """The same table through report.html and through Panel.load(panel.json)."""
    rng = np.random.default_rng(5)
    X = rng.gamma(3.0, 2.0, (48, 9))
    file = write_table(tmp_path / "table.tsv", X, targets_of(kind, X, rng).tolist())
    assert run(["select", file, "--target", "type", "-k", "3", "-o", str(tmp_path / "out"), *options]) == 0
    panel = Panel.load(tmp_path / "out" / "panel.json")
    new = pd.DataFrame(rng.gamma(3.0, 3.0, (6, 9)), columns=[f"g{j}" for j in range(9)])
    page = show((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    paste(page, new.to_csv(index=False))
    outside = [[name for name, _ in entries] for entries in panel.check(new, 9).outside]
    for k in (3, 1, 9):
        set_k(page, k)
        rows, numbers = shown(page)
        wanted = panel.predict(new, k)[:, None] if kind == "numbers" else panel.predict_proba(new, k)
        assert np.allclose(numbers, wanted, rtol=1e-12, atol=1e-9)
        if kind != "numbers":
            assert [row["decided"] for row in rows] == panel.predict(new, k).tolist()
    assert [bool(row["note"]) for row in rows] == [bool(names) for names in outside]
    assert all(f"{names[0]} = " in row["note"] for names, row in zip(outside, rows, strict=True) if names)


def forms_of_tables(separator, rows):
    """Yield the same two samples written in many ways, and the names that they then have."""
    header = separator.join("ABC")
    values = "\n".join(rows)
    named = "\n".join(f"s{separator}{row}" for row in rows)
    spaced = "\n".join(row.replace(separator, f" {separator} ") for row in rows)
    yield f"{header}\n{values}", "12"
    yield values, "12"
    yield separator.join(f'"{name}"' for name in "ABC") + f"\n{values}", "12"
    yield f"\ufeff{header}\r\n{rows[0]}\r\n{2 * separator}\r\n\r\n{rows[1]}\r\n", "12"
    yield header.replace(separator, f" {separator} ") + f"\n{spaced}", "12"
    yield f"x{separator}{header}\n" + named.replace("s", "7"), "12"
    yield f"{header}\n{named}", "ss"
    yield f"id{separator}{header}\n{named}", "ss"
    yield named, "ss"


def test_forms_of_tables(show):
    content = make_content(n_classes=2, k=3, k_max=4, names=["A", "B", "C", "D"])
    page = show(content)
    X = np.array([[1.5, 2.0, 3.25], [4.0, 1e-3, 6.0]])
    wanted = expected(content, 3, X)[1]
    for separator in "\t;,":
        for text, names in forms_of_tables(separator, [separator.join(repr(float(x)) for x in row) for row in X]):
            paste(page, text)
            found, numbers = shown(page)
            assert np.allclose(numbers, wanted, atol=1e-9), text
            assert "".join(row["name"] for row in found) == names, text


NOT_PREDICTED = {
    "A\tB\tC\n1,5\t2\t3": "A has a decimal comma: write 1.5 for 1,5",
    "1,5;2,5;3,5": "A has a decimal comma: write 1.5 for 1,5; B has a decimal comma: write 2.5 for 2,5; C has",
    "1,5,2,5,3,5": "6 values for 3 features. Separate them by tabs, semicolons or commas",
    "A,B,C\n1,5,2,5,3,5": "6 cells below 3 names. Separate",
    "A\tB\tC\n1\t\t3": "B has no value",
    "A\tB\tC\n1\t2": "C has no value",
    "A\tB\tC\n1\tNA\tx": "B is no number: NA; C is no number: x",
    "A\tB\tC\n1\t1e999\t0x10": "B is no number: 1e999; C is no number: 0x10",
    "1\t2": "2 values for 3 features",
    "1\t2\t3\t4": "4 values for 3 features",
}


def test_a_sample_that_cannot_be_read_is_told(show):
    page = show(make_content(k=3, k_max=4, names=["A", "B", "C", "D"]))
    for text, told in NOT_PREDICTED.items():
        paste(page, text)
        [row] = shown(page)[0]
        assert row["note"].startswith(told)
        assert row["numbers"] == []
        assert status(page) == "0 of 1 sample predicted with 3 features."


def test_values_outside_the_training_range_are_told(show):
    """Beyond a tenth of the range, as l20fs predict tells it; in the units that were pasted."""
    panel = replace(make_panel(3, 2), minimum=[0.0, 0.0, 1.0], maximum=[10.0, 10.0, 1.0])
    page = show(make_content(n_classes=2, k=3, k_max=3, names=["A", "<b>", "C"], panel=panel))
    paste(page, "11\t-1\t1\n11.01\t-1.5\t1.1\n5\t5\t1")
    notes = [row["note"] for row in shown(page)[0]]
    told = (
        "Outside what the panel was trained on: A = 11.01, in training 0 to 10; <b> = -1.5, in training 0 to 10; C = 1.1, in"
    )
    assert notes[0] == notes[2] == ""
    assert notes[1].startswith(told)
    panel = replace(panel, transform="log1p", minimum=[0.0] * 3, maximum=[np.log1p(99.0)] * 3)
    page = show(make_content(n_classes=2, k=3, k_max=3, names=["A", "B", "C"], panel=panel))
    paste(page, "1\t2\t1000\n1\t-2\t3")
    rows, _ = shown(page)
    assert rows[0]["note"] == "Outside what the panel was trained on: C = 1000, in training 0 to 99"
    assert rows[1]["note"] == "B is -2, but the panel takes log(1 + x) of values from 0"


def test_hostile_names_and_values_stay_text(show):
    """The names as the page fills them in, however they are written; the fixture looks for dialogs and requests."""
    content = evil_content()
    page = show(content)
    page.locator("#sample-names").click()
    header = page.locator("#samples").input_value()
    X = np.random.default_rng(0).uniform(2, 8, (1, len(EVIL)))
    values = "\t".join(repr(float(x)) for x in X[0])
    for name in ("<img src=x onerror=alert(1)>", '"><script>alert(1)</script>', "جين"):
        paste(page, header + f"{name}\t{values}\n<b>bad</b>\t<i>worse</i>")
        rows, _ = shown(page)
        assert rows[0]["name"] == name
        assert np.allclose(rows[0]["numbers"], expected(content, len(EVIL), X)[1][0], atol=1e-9)
        assert rows[1]["name"] == "<b>bad</b>"
        assert "is no number: <i>worse</i>" in rows[1]["note"]
        assert page.locator("#predictions").locator("img, script, b, i").count() == 0
    paste(page, f"{EVIL[0]}\t{EVIL[2]}\n1\t2")
    assert status(page).startswith("Columns are missing: ")
    assert page.locator("#prediction-status").locator("img, script, b, i, svg").count() == 0


def test_buttons_and_keyboard(show):
    content = make_content(n_classes=2, k=2, k_max=3, names=["A", "B", "C"])
    page = show(content)
    page.locator("#samples").focus()
    page.keyboard.type("3")
    page.keyboard.press("Tab")  # it leaves the field, so that nobody is caught in it
    assert page.evaluate("document.activeElement.id") == "sample-names"
    page.keyboard.press("Enter")
    assert page.locator("#samples").input_value() == "A\tB\n3"
    page.locator("#sample-names").click()
    assert page.locator("#samples").input_value() == "A\tB\n3"
    assert page.evaluate("document.activeElement.id") == "samples"
    page.locator("#sample-clear").press("Enter")
    assert page.locator("#samples").input_value() == ""
    assert status(page) == ""
    assert not page.locator("#predictions").is_visible()
    assert page.get_by_text("This is not a medical device and must not be used for diagnosis").is_visible()


@pytest.mark.parametrize("name", ["4 classes", "2 targets"])
def test_predictions_are_for_every_reader(show, name):
    page = show(CONTENTS[name](), viewport={"width": 375, "height": 800})
    page.locator("#sample-names").click()
    k = int(page.locator("#k-number").input_value())
    paste(page, page.locator("#samples").input_value() + "\n".join(["\t".join(["99"] * k), "1,5", "x"]))
    assert page.locator("#predictions tbody tr").count() == 3
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
