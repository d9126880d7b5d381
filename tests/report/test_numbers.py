"""What pages say is true of their tables, and extreme tables have a page."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from cli_samples import write

from l20fs.cli import run
from l20fs.report.figures import evenly, shade


def page_of(frame, folder, *options):
    table = write(frame, folder / "table.tsv")
    assert run(["select", table, "--target", "type", *options, "-o", str(folder / "out")]) == 0
    return (folder / "out" / "report.html").read_text(encoding="utf-8")


def noise(n_samples, n_features, n_classes):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((n_samples, n_features))).add_prefix("g")
    return frame.assign(type=[f"class {i % n_classes}" for i in range(n_samples)])


def test_the_demo_is_one_small_file_with_one_score(tmp_path):
    assert run(["select", "demo", "-o", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) <= 500_000
    table = pd.read_csv(tmp_path / "features.tsv", sep="\t")
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert all(name in header for name in table["feature"][:5])
    score = re.search(r"accuracy (\d+\xa0% \(\d+ to \d+\xa0%\))", header)[1]
    assert page.count(score) >= 3, "headline, slider and text about methods"
    assert "37\xa0%" in header


def test_the_heatmap_has_means_in_deviations(tmp_path):
    frame = noise(40, 6, 2)
    page = page_of(frame, tmp_path, "-k", "6")
    values = frame.drop(columns="type")
    z = (values - values.mean()) / values.std(ddof=0)
    means = z.groupby(frame["type"]).mean()
    for name in values:
        for label, level in means[name].items():
            shown = f"{round(level, 2):z.1f}".replace("-", "\N{MINUS SIGN}")
            assert f"{name}, {label}: {shown}</title>" in page


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((30, 1, 2), ["-k", "1"], "1 of 1 features"),
        ((30, 700, 2), ["-k", "600", "--config", "search.max_features=600"], "600 features were selected. This page shows"),
        ((600, 5, 100), ["-k", "5"], "a table of all 100 classes would be too large"),
    ],
)
def test_one_feature_many_features_many_classes(shape, options, said, tmp_path):
    page = page_of(noise(*shape), tmp_path, *options)
    assert said in page
    assert len(page) < 2_000_000
    assert len(pd.read_csv(tmp_path / "out" / "features.tsv", sep="\t")) == int(options[1])


def test_advice_about_counts_and_few_samples(tmp_path):
    random = np.random.default_rng(0)
    counts = pd.DataFrame(random.poisson(random.gamma(0.3, 60, (24, 30)))).add_prefix("g")
    page = page_of(counts.assign(type=np.repeat(["a", "b"], 12)), tmp_path, "-k", "3")
    assert "<code>--log1p</code>" in page
    assert "24 samples are few" in page


@pytest.mark.parametrize(("z", "level"), [(0.0, 0), (0.21, 1), (-0.9, -2), (9.0, 5), (-9.0, -5), (float("nan"), 0)])
def test_shades(z, level):
    assert shade(z) == level


def test_samples_are_thinned_evenly():
    assert evenly(np.arange(10), 4).tolist() == [0, 3, 6, 9]
    assert evenly(np.arange(3), 4).tolist() == [0, 1, 2]
