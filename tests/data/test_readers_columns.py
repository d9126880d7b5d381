"""What the columns of a table are: features, texts that are left out, metadata; samples in rows or in columns."""

from __future__ import annotations

import files
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from files import DONORS, FRAME, GENES, LABELS, SAMPLES, X

from l20fs.data.readers import DataError, UnknownColumnError, read_table

SITES = ["Bonn", "Ulm"] * 4
SEXES = ["f", "m", "m", "f"] * 2


def refuse(file, *arguments, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        read_table(file, *arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def notes_of(table):
    return [note for note in table.notes if "look like dates" not in note]


def write(frame, file, **options):
    """Write a frame as the name of the file says."""
    {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[file.suffix[1:]](file, **options)
    return file


def turned_table(**rows):
    """Return the table with samples in columns, and rows of text above the genes."""
    about = pd.DataFrame(rows.values(), index=rows.keys(), columns=SAMPLES)
    return pd.concat([about, FRAME.T.astype(object)]).rename_axis("gene")


@pytest.fixture(scope="module")
def sheet(tmp_path_factory):
    file = tmp_path_factory.mktemp("sheets") / "sheet.csv"
    file.write_text(files.LABEL_FILE)
    return file


# Texts


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_columns_of_text_are_left_out(tmp_path, ending):
    frame = FRAME.assign(sex=SEXES, type=LABELS, site=SITES)
    file = write(frame, tmp_path / f"a.{ending}")
    table = read_table(file, "type")
    np.testing.assert_array_equal(table.X, X)
    assert (table.feature_names, table.others, table.sample_names) == (GENES, ["sex", "site"], SAMPLES)
    assert notes_of(table) == [f"{file.name}: 2 columns of text are left out: 'sex', 'site' (--ignore sex,site)."]
    assert table.choices == {file.name: {"ignore": ["sex", "site"]}}
    assert "2 columns of text are left out: 'sex', 'site', and --strict forbids" in refuse(file, "type", strict=True)
    for ignore in (["sex", "site"], ["s*"], ["s?x", "sit?"]):
        said = read_table(file, "type", ignore=ignore, strict=True)
        assert (said.feature_names, notes_of(said), said.choices) == (GENES, [], {})
        assert sorted(said.others) == ["sex", "site"]
    assert read_table(file, "site", groups="sex").others == ["type"]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_rows_and_descriptions_of_text_are_left_out(tmp_path, ending):
    frame = turned_table(sex=SEXES, type=LABELS, site=SITES, donor=DONORS)
    frame.insert(0, "description", [None] * 4 + ["about it"] * 5)
    frame.insert(3, "symbol", ["of a person", None, None, None, *(f"symbol {j}" for j in range(5))])
    file = write(frame, tmp_path / f"a.{ending}")
    table = read_table(file, "type", groups="donor", samples_in="columns")
    np.testing.assert_array_equal(table.X, X)
    assert (table.y.tolist(), table.groups.tolist()) == (LABELS, DONORS)
    assert (table.feature_names, table.sample_names) == (GENES, SAMPLES)
    left_out = ["description", "symbol", "sex", "site"]
    assert table.others == left_out
    assert table.choices == {file.name: {"ignore": left_out}}
    assert notes_of(table)[0].startswith(f"{file.name}: 2 columns and 2 rows of text are left out: 'description', 'symbol'")
    assert "'description', 'symbol'" in refuse(file, "type", groups="donor", samples_in="columns", strict=True)
    said = read_table(file, "type", samples_in="columns", ignore=[*left_out, "donor"], strict=True)
    np.testing.assert_array_equal(said.X, X)
    assert notes_of(said) == []
    panel = read_table(file, samples_in="columns", needed={"TP53", "44256"}, need_labels=False)
    np.testing.assert_array_equal(panel.X, X[:, [0, 4]])
    assert panel.sample_names == SAMPLES


def test_a_description_of_numbers_is_a_column_to_ignore(tmp_path, sheet):
    frame = FRAME.T.rename_axis("gene")
    frame.insert(0, "length", np.arange(5.0))
    for ending in ("csv", "xlsx", "parquet"):
        file = write(frame, tmp_path / f"a.{ending}")
        table = read_table(file, "type", labels=sheet, samples_in="columns", ignore=["length", "NA"])
        np.testing.assert_array_equal(table.X, np.delete(X, 1, axis=1))
        assert sorted(table.others) == ["NA", "length"]


def test_text_among_numbers_of_a_feature_is_refused_with_its_place(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("gene,s1,s2,s3\ntype,u,v,u\nTP53,1,2,3\nMYC,high,3,4\n")
    message = refuse(file, "type", samples_in="columns")
    assert "line 4, 'MYC', holds text: 'high' in column 's1'" in message
    file.write_text("gene,s1,s2\ntype,u,v\nsite,Bonn,Ulm\n")
    assert "no features besides the target" in refuse(file, "type", samples_in="columns")
    file.write_text("type,a,b\nu,x,y\nv,y,z\n")
    assert "no feature columns besides the target but text ('a', 'b')" in refuse(file, "type", ignore=["a", "b"])


def test_text_in_a_feature_that_is_needed_is_refused(tmp_path):
    file = write(FRAME.assign(type=LABELS, site=SITES), tmp_path / "a.csv")
    assert "1 column of text, first 'site'" in refuse(file, "type", needed={"TP53", "site"})
    assert notes_of(read_table(file, "type", needed={"TP53"})) == []
    file = write(turned_table(type=LABELS, site=SITES), tmp_path / "b.csv")
    assert "1 row of text, first 'site'" in refuse(file, "type", needed={"TP53", "site"}, samples_in="columns")


# Names and patterns


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return {folder / name: given for name, given in files.lay_out(folder).items()}


FORMATS = ["a.csv", "turned.csv", "three.gct.gz", "a.arff", "a.npz", "a.parquet", "turned.parquet", "a.xlsx", "turned.xlsx"]


@pytest.mark.parametrize("name", [*FORMATS, "a.h5ad", "matrix.mtx", "a.svm"])
def test_features_are_chosen_in_every_format(options, name):
    file = next(file for file in options if file.name == name)
    whole = read_table(file, **options[file])
    names = whole.feature_names
    dense = whole.X.toarray() if sp.issparse(whole.X) else whole.X
    for given, kept in (
        ({"ignore": [names[1], f"{names[3][:2]}?"]}, [0, 2, 4]),
        ({"features": [names[4], names[0]]}, [0, 4]),
        ({"features": ["*"], "ignore": [names[0]]}, [1, 2, 3, 4]),
    ):
        if name == "a.svm" and "?" in "".join(given.get("ignore", [])):
            continue  # the names of all of its features begin alike
        table = read_table(file, **options[file], **given)
        assert table.feature_names == [names[place] for place in kept]
        np.testing.assert_array_equal(table.X.toarray() if sp.issparse(table.X) else table.X, dense[:, kept])
        assert set(table.others) >= set(names) - set(table.feature_names)
        assert table.y.tolist() == whole.y.tolist()
    for option in ("ignore", "features"):
        wrong = names[2][:-1] + "x"
        message = refuse(file, kind=UnknownColumnError, **options[file], **{option: [wrong]})
        assert f"--{option}: there is no column {wrong!r}. Did you mean" in message
        message = refuse(file, kind=UnknownColumnError, **options[file], **{option: ["zz*"]})
        assert f"--{option}: no column matches 'zz*'. It has" in message
    assert "leave no feature" in refuse(file, **options[file], ignore=["*"], features=[names[0]])


def test_target_and_groups_are_not_ignored(tmp_path):
    file = write(FRAME.assign(type=LABELS, donor=DONORS, site=SITES), tmp_path / "a.csv")
    assert "--ignore 'type' names the column of the target" in refuse(file, "type", ignore=["type"])
    assert "--ignore 'donor' names the column of the groups" in refuse(file, "type", groups="donor", ignore=["donor"])
    table = read_table(file, "type", groups="donor", ignore=["s*"])
    assert (table.feature_names, table.groups.tolist(), table.sample_names) == (GENES, DONORS, SAMPLES)
    assert "--features 'site' names a column that is left out: it holds text" in refuse(file, "type", features=["site"])


# Samples in columns


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_the_name_of_a_row_says_that_samples_are_in_columns(tmp_path, ending):
    file = write(turned_table(type=LABELS, donor=DONORS), tmp_path / f"a.{ending}")
    table = read_table(file, "type", groups="donor")
    np.testing.assert_array_equal(table.X, X)
    assert (table.y.tolist(), table.sample_names, table.feature_names) == (LABELS, SAMPLES, GENES)
    said = "'type' is the name of a row, so samples are in columns"
    assert notes_of(table) == [f"{file.name}: {said} (--samples-in columns)."]
    assert table.choices == {file.name: {"samples_in": "columns"}}
    assert f"{said}, and --strict forbids to guess. Say so with --samples-in columns" in refuse(file, "type", strict=True)
    assert "no column 'type'" in refuse(file, "type", samples_in="rows", kind=UnknownColumnError)
    assert "no column 'tpye'" in refuse(file, "tpye", kind=UnknownColumnError)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_the_samples_of_the_labels_say_that_they_are_in_columns(tmp_path, sheet, ending):
    file = write(FRAME.T.rename_axis("gene"), tmp_path / f"a.{ending}")
    table = read_table(file, "type", labels=sheet)
    np.testing.assert_array_equal(table.X, X)
    assert (table.y.tolist(), table.sample_names) == (LABELS, SAMPLES)
    assert table.choices == {file.name: {"samples_in": "columns"}}
    said = "the samples of sheet.csv are the names of columns, so samples are in columns"
    assert notes_of(table) == [f"{file.name}: {said} (--samples-in columns)."]
    assert said in refuse(file, "type", labels=sheet, strict=True)
    upright = write(FRAME, tmp_path / f"b.{ending}")
    assert notes_of(read_table(upright, "type", labels=sheet, strict=True)) == []


def test_the_features_of_a_panel_say_that_samples_are_in_columns(tmp_path):
    file = write(FRAME.T.rename_axis("gene"), tmp_path / "a.csv")
    table = read_table(file, needed={"TP53", "MYC"}, need_labels=False)
    np.testing.assert_array_equal(table.X, X[:, :1])
    assert table.choices == {"a.csv": {"samples_in": "columns"}}
    assert "--strict forbids" in refuse(file, needed={"TP53"}, need_labels=False, strict=True)
    assert "--samples-in columns" in refuse(file, needed={"TP53"}, need_labels=False, samples_in="rows")


def test_numbers_are_names_if_the_labels_have_them(tmp_path):
    """In the order of the lines, they would get the labels of others."""
    ids = [1017, 1003, 1090, 1044, 1081, 1022, 1075, 1066]
    file = write(FRAME.set_axis(pd.Index(ids, name="patient")), tmp_path / "a.csv")
    labels = pd.DataFrame({"patient": ids, "type": LABELS}).sort_values("patient")
    labels.to_csv(tmp_path / "labels.csv", index=False)
    table = read_table(file, labels=tmp_path / "labels.csv")
    assert (table.y.tolist(), table.sample_names, table.feature_names) == (LABELS, list(map(str, ids)), GENES)


# Metadata


def test_metadata_are_named_in_one_warning(tmp_path):
    frame = FRAME.assign(type=LABELS, age=np.arange(8.0) + 0.5, Batch=[1, 2] * 4)
    file = write(frame, tmp_path / "a.csv")
    table = read_table(file, "type")
    assert table.feature_names == [*GENES, "age", "Batch"]
    said = "2 columns look like metadata, not features: 'age', 'Batch'. If so, leave them out: --ignore age,Batch"
    assert notes_of(table) == [f"a.csv: {said}"]
    assert notes_of(read_table(file, "type", ignore=["age", "Batch"])) == []
    assert notes_of(read_table(file, "type", features=["*"])) == []
    assert notes_of(read_table(file, "type", needed={"age"})) == []
    turned = write(turned_table(type=LABELS, age=range(8)), tmp_path / "b.csv")
    assert "'age'" in notes_of(read_table(turned, "type", samples_in="columns"))[0]
    days = pd.DataFrame(np.tile(X, 6)[:, :30], columns=[f"day_{j}" for j in range(30)]).assign(type=LABELS)
    assert notes_of(read_table(write(days, tmp_path / "c.csv", index=False), "type")) == []


# Labels


def test_labels_and_groups_that_are_spelled_alike_are_shown(tmp_path):
    labels = ["Ewing", "Ewing ", "EWS", "ewing", "Ewing", "EWS", "EWS", "EWS"]
    donors = ["d 1", "d\xa0\xa01", "d2", "d2", "d1", "d1", "d3", "D3"]
    file = write(FRAME.assign(type=labels, donor=donors), tmp_path / "a.csv")
    first, second = notes_of(read_table(file, "type", groups="donor"))
    assert first == (
        "a.csv: labels differ only in case or blanks: 'Ewing' (2), 'Ewing ' (1), 'ewing' (1). They are different classes; "
        "make them equal if they are the same."
    )
    assert "groups differ only in case or blanks: 'D3' (1), 'd3' (1); 'd 1' (1), 'd1' (2), 'd\\xa0\\xa01' (1)." in second
    assert notes_of(read_table(write(FRAME.assign(type=LABELS), tmp_path / "b.csv"), "type")) == []


def test_a_first_column_that_most_samples_share_is_no_name(tmp_path):
    rows = "".join(f"{'Adelie' if i < 6 else 'Gentoo'},{'mf'[i % 2]},{i * i}\n" for i in range(10))
    file = tmp_path / "penguins.csv"
    file.write_text("species, sex ,mass\n" + rows)  # blanks around the name of the target
    table = read_table(file, "sex")
    assert (table.sample_names, table.feature_names, table.others) == (None, ["mass"], ["species"])
    assert table.notes == ("penguins.csv: 1 column of text is left out: 'species' (--ignore species).",)
    file.write_text("animal,sex,mass\n" + "".join(f"a{i // 2},{'mf'[i % 2]},{i * i}\n" for i in range(10)))
    assert read_table(file, "sex").sample_names[:3] == ["a0", "a0.1", "a1"]  # each measured twice
