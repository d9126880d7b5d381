"""``l20fs predict``: classes or numbers of new samples by a panel."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli.folder import check_output, versions, write_results
from l20fs.cli.options import ReadingOptions, reading_options
from l20fs.cli.output import Table, note, readable, show_json, show_tables
from l20fs.cli.parameter_types import FEATURES
from l20fs.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from l20fs.prediction.new_samples import NewSamples
    from l20fs.prediction.panel import Panel
    from l20fs.tables import Samples

#: The file of a panel in the folder that ``l20fs select`` writes.
PANEL_FILE = "panel.json"
MOST_ROWS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ReadingOptions):
    """All options of ``l20fs predict``."""

    n_features: int | None = None
    output: Path | None = None
    as_json: bool = False
    force: bool = False


@click.command()
@click.argument("panel", type=click.Path(path_type=Path, exists=True))
@click.argument("data")
@reading_options
@click.option("-k", "n_features", type=FEATURES, help="Features to use.  [default: those of the selection]")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for predictions.tsv and run.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the predictions as JSON instead of a table.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
def predict(panel: Path, data: str, **given: Any) -> None:
    """Predict the samples of DATA by PANEL: a panel.json, or the folder that `l20fs select -o` wrote.

    DATA needs no labels, and may have other columns. A feature that is missing is replaced by its best substitutes. For
    every sample it is said what lies outside the data that the panel was trained on. This is no medical device.

    \b
    Examples:
      l20fs predict results/panel.json new.csv -o predictions
      l20fs predict results new.h5ad --layer counts --json
    """
    from l20fs.cli.load import load_features
    from l20fs.prediction.new_samples import predict_samples
    from l20fs.report.delimited import write_frame

    options = PredictOptions(**given)
    output = options.output
    if output is not None:
        check_output(output, "predict", force=options.force)
    rule = load_panel(panel)
    samples = load_features(data, *panel_names(rule, options.n_features), options)
    found = predict_samples(rule, columns_of(samples), options.n_features)
    frame = predictions_frame(rule, samples, found)
    tell_notes(rule, samples, found, options.n_features)
    if found.n_outside:
        note(f"{outside_text(found)}: see the column `outside`")
    run = describe(panel, rule, data, samples, options.n_features) | {"replaced": found.replaced}
    if output is not None:
        names = write_results(output, "predict", {"predictions.tsv": write_frame(frame)}, run)
        note(f"Results are in {output}{os.sep}: {', '.join(names)}")
    if options.as_json:
        show_json(run | {"predictions": records_of(frame)})
    elif output is None:
        show_tables(shown(frame, rule))


def load_panel(place: Path) -> Panel:
    """Read a panel from its file, or from the folder of results that holds it."""
    from l20fs.cli.incoming import as_file
    from l20fs.prediction.panel import Panel

    file = place / PANEL_FILE if place.is_dir() else as_file(place)
    if not file.exists():
        raise click.UsageError(f"{place} has no {PANEL_FILE}. Make one with `l20fs select DATA -o {place}`.")
    return Panel.load(file)


def panel_names(panel: Panel, k: int | None) -> tuple[list[str], list[str]]:
    """Return the names of the features of a panel, and of all others that can replace them."""
    features = panel.features_for(k)
    return features, (panel.features + panel.substitutes)[len(features) :]


def columns_of(samples: Samples) -> dict[str, Any]:
    """Return the columns of a small table by name."""
    import numpy as np

    X = samples.X.toarray() if hasattr(samples.X, "toarray") else np.asarray(samples.X)
    return dict(zip(samples.feature_names, X.T, strict=True))


def sample_names(samples: Samples) -> list[str]:
    """Return the names of the samples, or their numbers."""
    return samples.sample_names or [str(number + 1) for number in range(samples.X.shape[0])]


def predictions_frame(panel: Panel, samples: Samples, found: NewSamples) -> pd.DataFrame:
    """Return a row per sample: its name, what is predicted, a probability per class, and what lies outside."""
    import pandas as pd

    columns: dict[str, Any] = {"sample": sample_names(samples)}
    if found.predicted.ndim == 1:
        columns["predicted"] = found.predicted
    else:
        columns |= {f"predicted_{name}": found.predicted[:, place] for place, name in enumerate(panel.targets)}
    if found.probabilities is not None:
        columns |= {f"probability_{name}": found.probabilities[:, place] for place, name in enumerate(panel.classes or [])}
    return pd.DataFrame(columns | {"outside": found.remarks})


def tell_notes(panel: Panel, samples: Samples, found: NewSamples, k: int | None) -> None:
    """Say what was read, which features are missing, and by what they were replaced."""
    from l20fs.tables.names import near_names

    features = panel.features_for(k)
    note(f"{samples.title}: {counted(len(found.remarks), 'sample')}, panel of {counted(len(features), 'feature')}")
    if panel.transform == "log1p":
        note("The panel takes log(1 + x) of all values, as in training: give raw values.")
    if found.replaced:
        hint = near_names(list(found.replaced), samples.others)
        words = [f"{name} by {other}" if other else f"{name} by nothing" for name, other in found.replaced.items()]
        note(f"{counted(len(words), 'feature')} missing in all samples and replaced: {', '.join(words)}.{hint}")


def outside_text(found: NewSamples) -> str:
    """Say how many samples lie outside the training data."""
    verbs = "lies outside the training data or lacks" if found.n_outside == 1 else "lie outside the training data or lack"
    return f"{found.n_outside} of {counted(len(found.remarks), 'sample')} {verbs} features"


def describe(place: Path, panel: Panel, data: str, samples: Samples, k: int | None) -> dict[str, Any]:
    """Return everything that the predictions depend on, without times."""
    return {
        "arguments": {"panel": readable(str(place)), "data": readable(data), "k": panel.k if k is None else k},
        "panel": {"sha256": panel.sha256, "task": panel.task, "features": panel.features_for(k)},
        "input": {"sha256": samples.sha256, "n_samples": samples.X.shape[0]},
        "versions": versions(),
    }


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table for JSON, which knows no NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> records_of(pd.DataFrame({"sample": ["s1"], "predicted": [float("nan")]}))
    [{'sample': 's1', 'predicted': None}]
    """
    return [
        {str(name): None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def shown(frame: pd.DataFrame, panel: Panel) -> Table:
    """Return the first predictions as a table for a terminal."""
    n_more = len(frame) - MOST_ROWS_SHOWN
    caption = f"... and {n_more} more (all of them in predictions.tsv with -o DIR)" if n_more > 0 else ""
    table = Table(title=f"Predicted {'classes' if panel.classes else 'numbers'}", caption=caption)
    texts = {str(name): frame[name] for name in frame.columns if not str(name).startswith("probability_")}
    if panel.classes is not None:  # the largest alone: there may be many classes
        shares = frame[[f"probability_{name}" for name in panel.classes]].max(axis=1)
        texts = {
            "sample": texts["sample"],
            "predicted": texts["predicted"],
            "probability": shares,
            "outside": texts["outside"],
        }
    for name in texts:
        table.add_column(name, justify="right" if name == "probability" else "left", overflow="fold")
    for row in range(min(len(frame), MOST_ROWS_SHOWN)):
        table.add_row(*(_short(column.iloc[row]) for column in texts.values()))
    return table


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
