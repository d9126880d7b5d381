"""Sparse matrices whose arrays contradict their shape are refused at every door, instead of crashing compiled code."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs import L20Classifier, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.estimators.selection_table import substitutes
from l20fs.methods import ChiSquare, FisherScore

random = np.random.default_rng(0)
DENSE = random.standard_normal((20, 9)) * (random.random((20, 9)) < 0.5)
LABELS = np.arange(20) % 2


def set_entry(part, place, value):
    def change(X):
        getattr(X, part)[place] = value

    return change


def set_part(part, cut):
    return lambda X: setattr(X, part, cut(getattr(X, part)))


def swap_pointers(X):
    X.indptr[[3, 4]] = X.indptr[[4, 3]]


FAULTS = {
    "index too large": (set_entry("indices", 5, 10**6), r"indices from 0 to 1000000, outside 0 to \d+\. Build it again"),
    "index just too large": (set_entry("indices", 5, 20), r"indices from 0 to 20, outside"),
    "negative index": (set_entry("indices", 5, -3), r"indices from -3 to \d+, outside"),
    "indptr that falls": (swap_pointers, r"an indptr that does not rise from 0"),
    "indptr from 4": (set_entry("indptr", 0, 4), r"an indptr that does not rise from 0"),
    "negative indptr": (set_entry("indptr", 1, -10), r"an indptr that does not rise from 0"),
    "indptr beyond the data": (set_entry("indptr", -1, 10**6), r"1000000 values by indptr, but \d+ in data and"),
    "too little data": (set_part("data", lambda data: data[:-9]), r"\d+ values by indptr, but \d+ in data and"),
    "too few indices": (
        set_part("indices", lambda indices: indices[:-9]),
        r"\d+ values by indptr, but \d+ in data and \d+ in indices",
    ),
    "short indptr": (set_part("indptr", lambda indptr: indptr[:-2]), r"\d+ entries in indptr, and not \d+"),
    "long indptr": (set_part("indptr", lambda indptr: np.append(indptr, indptr[-1])), r"\d+ entries in indptr, and not"),
    "fractions": (set_part("indices", lambda indices: indices + 0.5), r"indices that are not whole numbers"),
}
fitted, model = L20Selector(3).fit(DENSE, LABELS), L20Classifier(3).fit(DENSE, LABELS)
panel = model.to_panel(DENSE, LABELS)
DOORS = {
    "fit": lambda X: L20Selector(3).fit(X, LABELS),
    "search": lambda X: L20SelectorCV(cv=2).fit(X, LABELS),
    "stability": lambda X: StabilitySelector(n_resamples=2).fit(X, LABELS),
    "transform": fitted.transform,
    "inverse_transform": fitted.inverse_transform,
    "predict": model.predict,
    "predict_proba": model.predict_proba,
    "substitutes": lambda X: substitutes(X, [0]),
    "panel": lambda X: model.to_panel(X, LABELS),
    "prediction of a panel": panel.predict,
    "method of dense X": lambda X: FisherScore(3).fit(X, LABELS),
    "method of sparse X": lambda X: ChiSquare(3).fit(X, LABELS),
    "transform of a method": FisherScore(3).fit(DENSE, LABELS).transform,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_structure_is_refused_in_one_line(fault):
    X = sp.csc_array(DENSE)
    change, message = FAULTS[fault]
    change(X)
    with pytest.raises(ValueError, match=rf"^X is not a valid CS[RC] matrix: it has {message}") as error:
        L20Selector(3).fit(X, LABELS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses(door):
    X = sp.csr_matrix(DENSE)
    X.indices[4] = 10**6
    with pytest.raises(ValueError, match=r"X is not a valid C.. matrix: it has indices from 0 to 1000000, outside 0 to"):
        DOORS[door](X)


def test_a_broken_matrix_of_cells_is_refused():
    anndata = pytest.importorskip("anndata")
    from l20fs.anndata import select_genes

    cells = anndata.AnnData(sp.csr_matrix(DENSE))
    cells.obs["type"] = [f"type {label}" for label in LABELS]
    cells.X.indices[4] = 10**6
    with pytest.raises(ValueError, match=r"adata\.X is not a valid CSR matrix"):
        select_genes(cells, "type", n_genes=2)
