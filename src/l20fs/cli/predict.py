"""``l20fs predict``: classes or numbers of new samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli import options
from l20fs.cli.options import OUTPUT, NumberOfFeatures, SectionedCommand, add_options, option
from l20fs.cli.results import check_folder
from l20fs.cli.terminal import note
from l20fs.files import write_atomically
from l20fs.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from l20fs import Panel
    from l20fs.prediction.new_samples import NewSamples
    from l20fs.tables import Samples
    from l20fs.tables.settings import Settings

#: The file of a panel in the folder that ``l20fs select`` writes.
PANEL_FILE = "panel.json"

number = option(
    "-k",
    "k",
    section="Panel",
    type=NumberOfFeatures(),
    metavar="N",
    help="Features to use.  [default: those of the selection]",
)


@click.command(cls=SectionedCommand, context_settings={"max_content_width": 100})
@click.argument("panel", type=click.Path(path_type=Path, exists=True))
@click.argument("data")
@add_options(
    number,
    option(
        "-o",
        "output",
        section=OUTPUT,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TSV to write.  [default: standard output]",
    ),
    options.force,
    options.config,
)
def predict(
    panel: Path, data: str, k: int | None, output: Path | None, force: bool, config: tuple[Settings, dict[str, Any]]
) -> None:
    """Predict the samples of DATA with PANEL: a panel.json, or the folder of a selection.

    DATA needs no classes, and may have other columns. A missing feature is replaced by the best substitutes. The column
    `outside` flags samples outside the training range. For research only, not a medical device.

    \b
    l20fs predict l20fs-results new.csv -o predictions.tsv
    """
    if output is not None:
        check_folder(output.parent, [output.name], force=force, way_out=f"Add --force to overwrite {output.name}.")
    rule = load_panel(panel)
    samples, found = predict_file(rule, data, config[0], k)
    text = predictions_frame(rule, samples, found).to_csv(sep="\t", index=False, float_format="%.10g", lineterminator="\n")
    if output is None:
        click.echo(text, nl=False)
    else:
        write_atomically(output, text)
        note(f"Predictions: {output}")


def load_panel(place: Path) -> Panel:
    """Read a panel from its file, or from the folder of results that holds it."""
    from l20fs import Panel

    file = place / PANEL_FILE if place.is_dir() else place
    if not file.exists():
        raise click.UsageError(f"{place} has no {PANEL_FILE}. Make one with: l20fs select DATA -o {place}")
    return Panel.load(file)


def predict_file(panel: Panel, data: str, settings: Settings, k: int | None, **asked: Any) -> tuple[Samples, NewSamples]:
    """Read the features of a panel, and what can replace them, and predict."""
    from l20fs.cli.samples import load_samples
    from l20fs.prediction.new_samples import predict_samples

    features = panel.features_for(k)
    others = (panel.features + panel.substitutes)[len(features) :]
    samples = load_samples(data, settings, needed=features, substitutes=others, **{"need_labels": False, **asked})
    X = samples.X.toarray() if hasattr(samples.X, "toarray") else samples.X
    found = predict_samples(panel, dict(zip(samples.feature_names, X.T, strict=True)), k)
    note(f"{samples.title}: {counted(len(found.remarks), 'sample')}, panel of {counted(len(features), 'feature')}")
    if panel.transform == "log1p":
        note("The panel takes log(1 + x) of all values, as in training: give raw values.")
    if found.replaced:
        words = [f"{name} by {other}" if other else f"{name} by nothing" for name, other in found.replaced.items()]
        note(f"{counted(len(words), 'feature')} missing in all samples and replaced: {', '.join(words)}.")
    if found.n_outside:
        note(f"{counted(found.n_outside, 'sample')} outside the training range, or without some features: column `outside`.")
    return samples, found


def predictions_frame(panel: Panel, samples: Samples, found: NewSamples) -> pd.DataFrame:
    """Return a row per sample: its name, what is predicted, a probability per class, and what lies outside."""
    import pandas as pd

    columns: dict[str, Any] = {"sample": samples.sample_names or [str(i + 1) for i in range(len(found.remarks))]}
    if found.predicted.ndim == 1:
        columns["predicted"] = found.predicted
    else:
        columns |= {f"predicted_{name}": found.predicted[:, place] for place, name in enumerate(panel.targets)}
    if found.probabilities is not None:
        columns |= {f"probability_{name}": found.probabilities[:, place] for place, name in enumerate(panel.classes or [])}
    return pd.DataFrame(columns | {"outside": found.remarks})
