"""The answers of four solvers on small problems are those that were stored (make_golden.py), and so are a panel's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from acceptance import doors
from acceptance.make_golden import GOLDEN, PROBLEMS, answers, panel_answers


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_solver_and_scale_gives_the_stored_path(name):
    stored = json.loads((GOLDEN / f"{name}.json").read_text())
    found = answers(**stored["problem"])
    for key, expected in stored["answers"].items():
        assert found[key]["sizes"] == expected["sizes"], key
        assert found[key]["rows"] == expected["rows"], key
        np.testing.assert_allclose(found[key]["losses"], expected["losses"], rtol=1e-8, err_msg=key)
        largest = np.abs(expected["weights"]).max()
        np.testing.assert_allclose(found[key]["weights"], expected["weights"], rtol=1e-5, atol=1e-7 * largest, err_msg=key)


def test_a_stored_panel_predicts_what_it_predicted():
    stored = json.loads((GOLDEN / "panel_answers.json").read_text())
    found = panel_answers(doors.load_panel(GOLDEN / "panel.json"), stored["samples"])
    for k, expected in stored["answers"].items():
        assert found[k]["labels"] == expected["labels"]
        np.testing.assert_allclose(found[k]["probabilities"], expected["probabilities"], rtol=1e-6)
