"""panel.json of ``l20fs select``: it predicts what the selection means."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_samples import planted, write_table

from l20fs import Constraints, L20Classifier, Panel
from l20fs.cli import run
from l20fs.methods import ReliefF


@pytest.fixture
def table(tmp_path):
    X, labels, _ = planted()
    X = X - X.min()
    return write_table(tmp_path / "table.tsv", X, labels), pd.DataFrame(X, columns=[f"g{j}" for j in range(12)]), labels


def selected(table, folder, *options):
    assert run(["select", table, "--target", "type", "-k", "3", "-o", str(folder), *options]) == 0
    return Panel.load(folder / "panel.json")


@pytest.mark.parametrize("is_log", [False, True])
def test_it_has_the_rules_of_the_classifier(table, tmp_path, is_log):
    file, X, labels = table
    panel = selected(file, tmp_path / "out", *["--log"] * is_log)
    values = np.log1p(X) if is_log else X
    model = L20Classifier(3, max_features_to_select=12).fit(values, labels)
    assert (panel.k, panel.sizes, panel.targets) == (3, list(range(1, 13)), ["type"])
    for k in panel.sizes:
        np.testing.assert_allclose(
            panel.decision_function(X, k), model.at(k).decision_function(values), rtol=1e-9, atol=1e-9
        )
    stored = json.loads((tmp_path / "out" / "run.json").read_text())
    assert panel.data_sha256 == stored["input"]["sha256"]
    assert panel.provenance["protocol"] == stored["protocol"]
    assert panel.versions == stored["versions"]
    assert 0.5 < panel.provenance["score"]["value"] <= 1.0


def test_groups_are_selected_together(table, tmp_path):
    file, X, labels = table
    (tmp_path / "groups.tsv").write_text("g0\tfirst\ng1\tfirst\ng2\tsecond\ng3\tsecond\n")
    panel = selected(file, tmp_path / "out", "--feature-groups", str(tmp_path / "groups.tsv"))
    model = L20Classifier(3, max_features_to_select=12, constraints=Constraints(groups=[[0, 1], [2, 3]])).fit(X, labels)
    assert panel.ends == [len(model._order_for(k)) for k in panel.sizes]
    np.testing.assert_allclose(panel.decision_function(X), model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_another_method_has_the_rule_of_its_evaluation(table, tmp_path):
    file, X, labels = table
    panel = selected(file, tmp_path / "out", "--method", "ReliefF")
    order = np.argsort(ReliefF(12).fit(X, labels).ranking_)[:3]
    assert panel.features_for() == [f"g{j}" for j in order]
    model = L20Classifier(3, scale="zscore", ridge=panel.cross_products.ridge / len(labels)).fit(X.iloc[:, order], labels)
    np.testing.assert_allclose(panel.decision_function(X), model.decision_function(X.iloc[:, order]), rtol=1e-9, atol=1e-9)


def test_names_that_the_file_cannot_hold_are_noted(tmp_path, capsys):
    X, labels, _ = planted()
    names = [f"g{j}\x07" for j in range(12)]
    file = write_table(tmp_path / "table.tsv", X, labels, names)
    assert run(["select", file, "--target", "type", "-k", "3", "-o", str(tmp_path / "out")]) == 0
    assert "panel.json is not written: " in capsys.readouterr().err
    assert not (tmp_path / "out" / "panel.json").exists()
