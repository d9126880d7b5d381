from __future__ import annotations

import numpy as np
import pytest

from l20fs.data import load_srbct, make_planted


def test_srbct_subsets():
    train, test, both = (load_srbct(subset=subset) for subset in ("train", "test", "all"))
    assert (train.data.shape, test.data.shape, both.data.shape) == ((63, 2308), (20, 2308), (83, 2308))
    assert np.array_equal(both.data, np.vstack([train.data, test.data]))
    counts = dict(zip(*np.unique(train.target, return_counts=True), strict=True))
    assert counts == {"BL": 8, "EWS": 23, "NB": 12, "RMS": 20}
    assert len(set(train.feature_names)) == 2308
    assert "ISLP" in train.DESCR


def test_srbct_on_the_papers_scale():
    """Each sample has mean 0 and deviation 1 over the genes, and the genes keep their order within a sample."""
    log, paper = load_srbct(), load_srbct(scale="paper")
    assert np.allclose(paper.data.mean(axis=1), 0)
    assert np.allclose(paper.data.std(axis=1, ddof=1), 1)
    assert np.array_equal(np.argsort(log.data[0], kind="stable"), np.argsort(paper.data[0], kind="stable"))


@pytest.mark.parametrize(("name", "value"), [("subset", "validation"), ("scale", "raw")])
def test_srbct_refuses_unknown_options(name, value):
    with pytest.raises(ValueError, match=f"{name}='{value}' is unknown"):
        load_srbct(**{name: value})


def test_planted_data_are_the_published_recipe():
    """The recipe of the benchmark tables, written out once more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((63, 2308))
    true = np.sort(rng.choice(2308, 20, replace=False))
    signal = X[:, true] @ rng.standard_normal((20, 4))
    y = (signal + 0.5 * signal.std() * rng.standard_normal(signal.shape)).argmax(1)
    made = make_planted(63, 2308, 20, 4, random_state=0)
    assert all(np.array_equal(a, b) for a, b in zip(made, (X, y, true), strict=True))


def test_planted_data_refuse_too_many_informative_features():
    with pytest.raises(ValueError, match=r"n_informative=11 is not valid\. Use a number from 1 to n_features=10"):
        make_planted(20, 10, 11)
