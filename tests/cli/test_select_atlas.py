"""``l20fs select --atlas``: all panels that are nearly as good, in tables, sentences, JSON and on the page."""

from __future__ import annotations

import csv
import html
import json
from dataclasses import replace

import numpy as np
import pytest
from cli_samples import RESULTS, contents, planted, read_tsv, with_lonely, write_table
from select_findings import findings

from l20fs import Constraints, L20Selector
from l20fs.cli import run
from l20fs.cli.select_atlas import atlas_of, tell_atlas
from l20fs.inspection import near_optimal_panels


@pytest.fixture(scope="module")
def data():
    X, labels, _ = planted()
    X[:, 11] = X[:, 0] + 1e-3 * X[:, 11]
    return X, with_lonely(labels)


@pytest.fixture(scope="module")
def table(tmp_path_factory, data):
    return write_table(tmp_path_factory.mktemp("data") / "table.tsv", *data)


def selected(table, *arguments):
    return run(["select", table, "--target", "type", "-k", "3", "--ridge", "1", *arguments])


def parted(cell):
    return next(csv.reader([cell], skipinitialspace=True)) if cell else []


def test_tables_sentences_json_and_page(table, data, tmp_path, capsys):
    atlas = near_optimal_panels(L20Selector(3, ridge=1.0).fit(*data), *data, tolerance="20%")
    assert selected(table, "--atlas", "20%", "-o", str(tmp_path / "one")) == 0
    printed = " ".join(capsys.readouterr().out.split())
    said = f"{atlas.n_panels} panels of 3 features are within 20 % of the lowest loss."
    assert not len(atlas.in_all)
    assert f"{said} No feature is in all of them, 12 in any." in printed
    assert "It is proved that there are no others." in printed
    assert {file.name for file in (tmp_path / "one").iterdir()} == RESULTS | {"panels.tsv", "atlas.tsv"}

    panels = read_tsv(tmp_path / "one" / "panels.tsv")
    assert [parted(row["features"]) for row in panels] == [[f"g{j}" for j in panel] for panel in atlas.panels]
    np.testing.assert_allclose(
        [float(row["gap_percent"]) for row in panels], 100.0 * (atlas.losses / atlas.losses[0] - 1.0), atol=1e-8
    )
    assert [int(row["rank"]) for row in panels] == list(range(1, atlas.n_panels + 1))
    features = {row["feature"]: row for row in read_tsv(tmp_path / "one" / "atlas.tsv")}
    assert {name for name, row in features.items() if row["role"] == "core"} == {f"g{j}" for j in atlas.in_all}
    assert {name for name, row in features.items() if row["role"] == "optional"} == {f"g{j}" for j in atlas.in_some}
    assert "g11" in parted(features["g0"]["replaced_by"])

    page = html.unescape((tmp_path / "one" / "report.html").read_text())
    assert said in page
    assert json.loads((tmp_path / "one" / "run.json").read_text())["arguments"]["atlas"] == 0.2

    assert selected(table, "--atlas", "0.2", "-o", str(tmp_path / "two")) == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    capsys.readouterr()
    assert selected(table, "--atlas", "20%", "--json") == 0
    found = json.loads(capsys.readouterr().out)["atlas"]
    assert found["n_panels"] == len(found["panels"]) == atlas.n_panels
    assert found["panels"][0]["features"] == [f"g{j}" for j in atlas.panels[0]]


def test_auto_says_how_far_it_came(table, data, capsys):
    expected = near_optimal_panels(L20Selector(3, ridge=1.0).fit(*data), *data)
    assert selected(table, "--atlas", "auto", "--json") == 0
    found = json.loads(capsys.readouterr().out)["atlas"]
    assert found["eps"] == pytest.approx(expected.tolerance)
    assert found["noise"] == pytest.approx(expected.noise)
    assert found["is_complete"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--atlas", "much"], "'much' is not valid. Use auto, or a share such as 0.1%."),
        (["--atlas", "5"], "'5' is 500 %. Write 5% if you mean per cent."),
        (["--atlas", "1%", "--method", "CFS"], "--atlas does not go with --method CFS"),
        (["--atlas", "1%", "--ridge", "0"], "--atlas does not go with --ridge 0"),
    ],
)
def test_what_has_no_atlas_is_refused_before_the_fit(table, capsys, given, message):
    assert run(["select", table, "--target", "type", *given]) == 2
    printed = capsys.readouterr()
    assert message in " ".join(printed.err.split())
    assert printed.out == ""


def with_atlas(selector, k, **changes):
    """Findings of a run with an atlas; ``costs`` are those of an option."""
    found = findings(selector, k, predictions=None)
    samples = found.samples
    atlas = near_optimal_panels(found.selector, samples.X, samples.y, k, tolerance=0.3)
    return replace(found, atlas=replace(atlas, _names=np.array(samples.feature_names)), **changes)


def test_the_cheapest_is_named_by_its_differences():
    found = with_atlas(L20Selector(3, ridge=1.0), 3)
    best = found.atlas[0]
    object.__setattr__(found.options, "costs", {best.names[0]: 5.0, best.names[1]: 1.0})
    said = tell_atlas(found)[-1]
    cheapest = found.atlas.cheapest({best.names[0]: 5.0, best.names[1]: 1.0})
    assert cheapest.rank > 1
    assert said.startswith("The cheapest of them costs ")
    assert f"without {best.names[0]!r}" in said
    assert said.endswith(f"(panel {cheapest.rank}).")
    object.__setattr__(found.options, "costs", dict.fromkeys(found.samples.feature_names, 2.0))
    assert tell_atlas(found)[-1] == "The best of them is also the cheapest: it costs 6."


def test_groups_stand_for_their_features():
    found = with_atlas(L20Selector(2, ridge=1.0, constraints=Constraints(groups=[[0, 1], [2, 3]])), 2)
    shown, atlas = atlas_of(found), found.atlas
    assert len(shown.core) + len(shown.optional) == len({int(j) for j in atlas.panels.ravel()})
    assert "feature groups are within 30 % of the lowest loss" in tell_atlas(found)[0]


def test_without_atlas_nothing_is_said():
    found = findings(predictions=None)
    assert tell_atlas(found) == []
    assert atlas_of(found) is None
