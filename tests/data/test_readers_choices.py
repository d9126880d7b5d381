"""What a reader chose by itself, given as options: the same table, and nothing left to guess."""

from __future__ import annotations

import numpy as np
import pytest
from lab_files import EVERYDAY

from l20fs.cli.options import SelectOptions
from l20fs.cli.select import select
from l20fs.data.readers import read_table

#: Files with a guess that no option says; the file has to be corrected.
WITHOUT_OPTION = {"below-limit.csv"}


@pytest.mark.parametrize("case", [case for case in EVERYDAY if case.name not in WITHOUT_OPTION], ids=lambda case: case.name)
def test_choices_as_options(case, tmp_path):
    case.write(tmp_path / case.name)
    given = select.make_context("select", case.arguments(tmp_path)[1:]).params
    file = given.pop("data")
    asked = SelectOptions(**given)
    options = {"target": asked.target, **asked.given(), "strict": False}
    found = read_table(file, **options)
    for of_file in found.choices.values():
        for option, value in of_file.items():
            options[option] = [*options.get(option, ()), *value] if isinstance(value, list) else value
    again = read_table(file, **{**options, "strict": True})
    assert again.choices == {}
    np.testing.assert_array_equal(again.X_before, found.X_before)
    np.testing.assert_array_equal(again.X, found.X)
    assert again.y.tolist() == found.y.tolist()
    assert (again.feature_names, again.sample_names) == (found.feature_names, found.sample_names)
