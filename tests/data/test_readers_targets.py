"""Numbers as targets in every kind of file, and targets that may be labels or numbers."""

from __future__ import annotations

import gzip
import io

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from files import GENES, SAMPLES, X
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file, load_diabetes

from l20fs.data.readers import DataError, UnknownColumnError, read_table

AGES = np.array([31.0, 0.1, -2.5e-7, 64.0, 12.25, 1 / 3, 40.0, 31.0])
FRAME = pd.DataFrame(X, index=SAMPLES, columns=[*GENES[:4], "other"])


def write(folder, name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


def excel(folder):
    FRAME.assign(age=AGES).to_excel(folder / "a.xlsx")
    return folder / "a.xlsx"


def parquet(folder):
    FRAME.assign(age=AGES).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def h5ad(folder):
    obs = pd.DataFrame({"age": AGES}, index=SAMPLES)
    anndata.AnnData(sp.csr_array(X), obs=obs, var=pd.DataFrame(index=GENES)).write_h5ad(folder / "a.h5ad")
    return folder / "a.h5ad"


def npz(folder):
    np.savez(folder / "a.npz", X=X, y=AGES, class_names=["no", "labels"])
    return folder / "a.npz"


def mat(folder):
    savemat(folder / "a.mat", {"X": X, "Y": AGES[:, None]})
    return folder / "a.mat"


def svmlight(folder):
    stream = io.BytesIO()
    dump_svmlight_file(X, AGES, stream)
    return write(folder, "a.svm", stream.getvalue())


def arff(folder):
    rows = "".join(",".join(map(repr, [*row, age])) + "\n" for row, age in zip(X.tolist(), AGES.tolist(), strict=True))
    head = "@relation small\n" + "".join(f"@attribute g{j} numeric\n" for j in range(5))
    return write(folder, "a.arff", f"{head}@attribute age REAL\n@data\n{rows}")


def turned(folder):
    rows = pd.concat([FRAME.T, pd.DataFrame([AGES], index=["age"], columns=SAMPLES)])
    return write(folder, "turned.csv", rows.to_csv())


def text(folder):
    return write(folder, "a.tsv.gz", gzip.compress(FRAME.assign(age=AGES).to_csv(sep="\t").encode()))


def labels(folder):
    lines = "".join(f"{name},{age!r}\n" for name, age in zip(SAMPLES[::-1], AGES[::-1].tolist(), strict=True))
    write(folder, "ages.csv", "sample,age\n" + lines)
    return write(folder, "plain.csv", FRAME.to_csv())


@pytest.mark.parametrize("make", [text, turned, excel, parquet, h5ad, npz, mat, svmlight, arff, labels])
def test_numbers_come_out_of_every_kind_of_file_to_the_last_digit(make, tmp_path):
    file = make(tmp_path)
    options = {"target": None if make in (npz, mat, svmlight, arff, labels) else "age"}
    if make is turned:
        options["samples_in"] = "columns"
    if make is labels:
        options["labels"] = tmp_path / "ages.csv"
    table = read_table(file, **options, task="regression")
    assert table.y.dtype == np.float64
    assert table.task == "regression"
    np.testing.assert_array_equal(table.y, AGES)
    assert table.X.shape == X.shape


@pytest.mark.parametrize(
    ("ages", "message"),
    [
        (["1", "2", "old", "3"], "'age' has 1 value that is no number: 'old', first in line 4"),
        (
            ["1", "2,5", "3", "4"],
            "'2,5' in column 'age', line 3 and '0.5' in column 'g', line 2 have different",
        ),
        (["1", "1_000", "3", "4"], "'1_000', first in line 3"),
        (["", "?", "nan", "NA"], "4 of 4 samples have no 'age' ('?', 'nan', 'NA'), first in line 2, 3, 4, 5. Fill them in"),
        (["1", "-inf", "3", "4"], "'age' has 1 infinite value, first in line 3"),
        (["1", "1e999", "3", "4"], "'age' has 1 infinite value, first in line 3"),
        (["2", "2.0", "2e0", "2"], "'age' is 2 in all samples, so there is nothing to predict"),
    ],
)
def test_what_is_no_number_is_refused_by_its_line(tmp_path, ages, message):
    rows = "".join(f'"{age}",{i}.5\n' for i, age in enumerate(ages))
    with pytest.raises(DataError) as caught:
        read_table(write(tmp_path, "a.csv", "age,g\n" + rows), "age", task="regression")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_samples_without_a_number_are_left_out(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.where(np.arange(8) == 3, np.nan, AGES))
    table = read_table(tmp_path / "a.npz", task="regression")
    assert table.notes == ("a.npz: 1 of 8 samples has no 'y' ('nan'), in sample 4; it is left out.",)
    np.testing.assert_array_equal(table.y, np.delete(AGES, 3))
    np.testing.assert_array_equal(table.X, np.delete(X, 3, axis=0))


@pytest.mark.parametrize("texts", [["NA", "", " n/a"], ["#N/A", "NaN", "<NA>"], ["-", "-", "-"]])
def test_samples_without_a_label_are_left_out_with_their_values(tmp_path, texts):
    sexes = ["f", texts[0], "m", "f", "none", texts[1], "m", "none", texts[2], "f"]
    rows = "".join(f"s{i},{sex},d{i % 3},{'' if i == 1 else i}\n" for i, sex in enumerate(sexes))
    file = write(tmp_path, "a.csv", "name,sex,donor,g\n" + rows)
    na = ["-"] if texts[0] == "-" else []
    table = read_table(file, "sex", groups="donor", na=na)
    kept = [i for i, sex in enumerate(sexes) if sex in ("f", "m", "none")]  # none may be a class
    assert table.y.tolist() == [sexes[i] for i in kept]
    assert (table.sample_names, table.groups.tolist()) == ([f"s{i}" for i in kept], [f"d{i % 3}" for i in kept])
    assert table.X.ravel().tolist() == kept
    assert len(table.notes) == 1
    assert "3 of 10 samples have no 'sex' (" in table.notes[0]
    assert "first in line 3, 7, 10; they are left out" in table.notes[0]
    is_said = "" not in texts and not na  # under --strict NA is a class like any other
    with pytest.raises(DataError, match="has 5 different values" if is_said else "and --strict forbids to guess"):
        read_table(file, "sex", na=na, strict=True, missing="median", ignore=["donor"])


def test_the_column_has_to_be_named(tmp_path):
    with pytest.raises(UnknownColumnError, match="which column has the numbers to predict"):
        read_table(text(tmp_path), task="regression")
    with pytest.raises(UnknownColumnError, match="which column of obs has the numbers to predict"):
        read_table(h5ad(tmp_path), task="regression")
    with pytest.raises(ValueError, match=r"task='guess' is unknown\. Use 'auto', 'classification' or 'regression'"):
        read_table(text(tmp_path), "age", task="guess")


def table_of(folder, values):
    return write(folder, "a.csv", "y,g\n" + "".join(f"{value},{i * i}.5\n" for i, value in enumerate(values)))


@pytest.mark.parametrize(
    "values",
    [
        load_diabetes().target.astype(int).tolist(),  # 214 numbers in 442 samples, most of them once or twice
        np.repeat(np.arange(40) / 4, 5).tolist(),  # fractions
        list(range(60)),
    ],
    ids=["diabetes", "fractions", "once"],
)
def test_many_numbers_are_no_labels_unless_it_is_said(tmp_path, values):
    file = table_of(tmp_path, values)
    with pytest.raises(DataError, match="--task regression for numbers, --task classification for labels"):
        read_table(file, "y")
    np.testing.assert_array_equal(read_table(file, "y", task="regression").y, values)


def is_noted(file, **options):
    return any("different numbers, which are taken for labels" in note for note in read_table(file, "y", **options).notes)


def test_whole_numbers_with_many_samples_each_are_labels_and_a_note_says_so(tmp_path):
    many = np.repeat(np.arange(30), 5).tolist()
    assert read_table(table_of(tmp_path, many), "y").task == "classification"
    assert is_noted(table_of(tmp_path, many))
    assert not is_noted(table_of(tmp_path, many), task="classification")
    assert not is_noted(table_of(tmp_path, np.repeat(np.arange(20), 5).tolist()))
    assert not is_noted(table_of(tmp_path, [f"c{value}" for value in many]))


def test_fractions_may_be_labels(tmp_path):
    file = table_of(tmp_path, np.repeat(np.arange(40) / 4, 5).tolist())
    assert len(set(read_table(file, "y", task="classification").y.tolist())) == 40
