"""The file panel.json of ``l20fs select``: what predicts from the selected features."""

from __future__ import annotations

from collections.abc import Callable

from l20fs import L20Classifier
from l20fs.cli.load import nuisances_of
from l20fs.cli.output import note
from l20fs.cli.select_findings import Findings
from l20fs.estimators.calibration import calibrations_of_search
from l20fs.estimators.panel_export import build_panel
from l20fs.inputs.targets import encode_targets
from l20fs.prediction.calibration import Calibration
from l20fs.prediction.panel import Panel
from l20fs.prediction.panel_records import PanelError


def make_panel(findings: Findings) -> Panel | None:
    """Return the panel of a run; None, with a note, where a file cannot hold it."""
    samples, options = findings.samples, findings.options
    score = findings.score
    origin = {
        "title": samples.title,
        "method": options.method,
        "k_rule": findings.k_rule,
        **({"adjusted_for": list(samples.adjust_for)} if samples.adjust_for else {}),
        "protocol": findings.provenance.get("protocol"),
        "score": score and {"name": findings.metric.name, **score._asdict()},
    }
    try:
        panel = build_panel(
            findings.selector,
            samples.X,
            encode_targets(samples.y, samples.task)._replace(nuisances=nuisances_of(samples)),
            findings.k,
            target_names=[findings.target_name],
            transform="log1p" if options.is_log else "none",
            ridge=options.ridge,
            calibrate=calibration_of(findings),
            data_sha256=samples.sha256,
            provenance=origin,
            shared=findings.shared,
        )
    except PanelError as error:
        note(f"panel.json is not written: {error}")
        return None
    if panel.cross_products is None:
        note(
            "panel.json has no cross-products, which would be too many, or tell the values of a sample that is alone in its "
            "class: missing features cannot be replaced."
        )
    return panel


def calibration_of(findings: Findings) -> Callable[[int], Calibration] | None:
    """Return the calibrations by the values of the cross-validation, where these are known."""
    selector, predictions = findings.selector, findings.predictions
    if isinstance(selector, L20Classifier):
        return selector.calibration_for
    found = None if predictions is None else calibrations_of_search(predictions.sizes, predictions.found, 0, None)
    return None if found is None else found.at
