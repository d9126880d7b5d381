"""Khan's 20 blind samples, predicted by a panel that was selected on the 63 others, with and without one of its genes.

    python benchmarks/khan_blind.py

prints the table of docs/predict.md. The new table lacks each gene of the panel in turn: its substitutes take its place and
the weights are solved again, as `l20fs predict` does; or the weights stay, and the value is zero or the mean in training.
"""

from __future__ import annotations

import numpy as np

from l20fs import L20Classifier, Panel
from l20fs.data import load_srbct
from l20fs.inputs.names import NamedColumns
from l20fs.prediction.new_samples import predict_samples


def judge(panel: Panel, columns: dict[str, np.ndarray], truth: np.ndarray) -> tuple[int, float]:
    """Return the number of errors and the mean log loss."""
    found = predict_samples(panel, columns)
    places = np.searchsorted(np.array(panel.classes), truth)
    return int((found.predicted != truth).sum()), -float(np.log(found.probabilities[np.arange(len(truth)), places]).mean())


def main() -> None:
    train, blind = load_srbct(), load_srbct(subset="test")
    X = NamedColumns(train.data, train.feature_names)
    columns = dict(zip(blind.feature_names, blind.data.T, strict=True))
    print("| genes | all there | one missing: substitutes | zero | mean in training |\n|---:|---:|---:|---:|---:|")
    for k in (5, 10, 20, 50):
        panel = L20Classifier(k, max_features=100).fit(X, train.target).to_panel(X, train.target)
        found: dict[str, list[tuple[int, float]]] = {"substitutes": [], "zero": [], "mean": []}
        for place, gene in enumerate(panel.features_for(k)):
            rest = {name: values for name, values in columns.items() if name != gene}
            found["substitutes"].append(judge(panel, rest, blind.target))
            for name, value in (("zero", 0.0), ("mean", panel.columns.mean[place])):
                found[name].append(judge(panel, rest | {gene: np.full(len(blind.target), value)}, blind.target))
        full = judge(panel, columns, blind.target)
        means = [np.mean(each, axis=0) for each in ([full], *found.values())]
        print(f"| {k} | {' | '.join(f'{errors:.2f} ({loss:.3f})' for errors, loss in means)} |")


if __name__ == "__main__":
    main()
