"""Two marker genes for every cell type of scanpy's pbmc68k_reduced: the types without one before, and the price of it.

Run ``python benchmarks/markers_per_type.py`` where scanpy is installed. It prints the figures of docs/anndata.md: for 20 and
50 genes and each solver, the types with fewer than two genes of their own without constraints, the loss with and without
``Constraints(min_per_class=2)``, and the accuracy in five-fold cross-validation, five times, with the genes selected in each
fold.
"""

from __future__ import annotations

import numpy as np
import scanpy as sc
from sklearn.model_selection import RepeatedStratifiedKFold

from l20fs import Constraints, L20Classifier
from l20fs.inputs.names import NamedColumns

SIZES = (20, 50)
SOLVERS = ("forward", "swap")


def main() -> None:
    pbmc = sc.datasets.pbmc68k_reduced()
    X = np.asarray(pbmc.raw[:, pbmc.var_names].X.todense())  # .X is scaled
    y = pbmc.obs["bulk_labels"].to_numpy().astype(str)
    types = np.unique(y)
    owner = np.argmax([X[y == label].mean(axis=0) for label in types], axis=0)
    print(f"{len(y)} cells, {X.shape[1]} genes, {len(types)} types")
    for solver in SOLVERS:
        for k in SIZES:
            free = L20Classifier(k, solver=solver)
            fair = L20Classifier(k, solver=solver, constraints=Constraints(min_per_class=2))
            results = []
            for model in (free, fair):
                fitted = model.fit(NamedColumns(X, pbmc.var_names), y)
                held = np.bincount(owner[fitted.support_], minlength=len(types))
                results.append((held, fitted.path_.refit(k).loss / float(fitted.path_.null_loss), accuracies(model, X, y)))
            (before, loss, scores), (after, fair_loss, fair_scores) = results
            lacking = ", ".join(f"{name} {held}" for name, held in zip(types, before, strict=True) if held < 2)
            print(f"\n{solver}, {k} genes; fewer than two before: {lacking or 'none'}; least after: {after.min()}")
            print(f"  loss {loss:.4f} -> {fair_loss:.4f} of that without genes (+{fair_loss / loss - 1.0:.1%})")
            difference = fair_scores - scores
            error = difference.std(ddof=1) / np.sqrt(5.0)  # the five repeats share their samples
            print(
                f"  accuracy {scores.mean():.3f} -> {fair_scores.mean():.3f}, difference {difference.mean():+.3f} "
                f"(standard error {error:.3f})"
            )


def accuracies(model: L20Classifier, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the accuracy in each fold, with the genes selected inside it."""
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
    fresh = type(model)(**model.get_params(deep=False) | {"calibration": None})
    return np.array([fresh.fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds.split(X, y)])


if __name__ == "__main__":
    main()
