"""Files of labels: CSV, Excel or Parquet, matched to the samples by names that may differ a little."""

from __future__ import annotations

import re

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from l20fs.data.readers import DataError, UnknownColumnError, read_table
from l20fs.inputs.devices import is_dask

N = 12
SAMPLES = [f"Probe {i}" for i in range(N)]
X = np.random.default_rng(0).normal(size=(N, 3)).round(3)
SHEET = pd.DataFrame({"id": SAMPLES, "type": [*"uv"] * (N // 2), "donor": [f"d{i // 2}" for i in range(N)]})


@pytest.fixture
def table(tmp_path):
    pd.DataFrame(X, index=SAMPLES, columns=["a", "b", "c"]).to_csv(tmp_path / "table.csv")
    return tmp_path / "table.csv"


def read(table, sheet, target="type", **options):
    """Read the table with a sheet of labels, which is written as CSV."""
    file = table.parent / "labels.csv"
    sheet.to_csv(file, index=False)
    return read_table(table, target, labels=file, **options)


def refuse(*arguments, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        read(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def check(samples, kept=range(N)):
    """The samples have their own values, labels and groups."""
    kept = list(kept)
    assert samples.sample_names == [SAMPLES[i] for i in kept]
    assert samples.y.tolist() == SHEET["type"][kept].tolist()
    np.testing.assert_array_equal(samples.X, X[kept])
    if samples.groups is not None:
        assert samples.groups.tolist() == SHEET["donor"][kept].tolist()


# Kinds of files


@pytest.mark.parametrize("ending", ["xlsx", "parquet"])
def test_a_sheet_may_be_excel_or_parquet(table, ending):
    file = table.parent / f"labels.{ending}"
    getattr(SHEET.sample(frac=1, random_state=0), {"xlsx": "to_excel", "parquet": "to_parquet"}[ending])(file, index=False)
    found = read_table(table, "type", labels=file, groups="donor", strict=True)
    check(found)


def test_an_index_of_pandas_names_the_samples_of_a_parquet_sheet(table):
    SHEET.set_index("id").to_parquet(table.parent / "labels.parquet")
    check(read_table(table, "type", labels=table.parent / "labels.parquet", strict=True))


def test_the_sheet_of_a_workbook_with_the_target_is_found_named_and_noted(table):
    file = table.parent / "labels.xlsx"
    with pd.ExcelWriter(file) as book:
        pd.DataFrame({"Key": ["u"], "Meaning": ["normal"]}).to_excel(book, sheet_name="Legend", index=False)
        SHEET.to_excel(book, sheet_name="My samples", index=False)
    found = read_table(table, "type", labels=file)
    check(found)
    said = "labels.xlsx: its sheets are 'Legend', 'My samples'; 'My samples' has what is asked for and was read"
    assert found.notes == (f"{said} (--labels-sheet 'My samples').",)
    assert found.choices == {"labels.xlsx": {"labels_sheet": "My samples"}}
    assert read_table(table, "type", labels=file, labels_sheet="My samples").notes == ()
    with pytest.raises(DataError, match=r"--strict forbids to guess\. Say so with --labels-sheet 'My samples'"):
        read_table(table, "type", labels=file, strict=True)
    with pytest.raises(UnknownColumnError, match=r"no sheet 'samples'. .*Its sheets: 'Legend', 'My samples'\."):
        read_table(table, "type", labels=file, labels_sheet="samples")
    with pytest.raises(DataError, match="labels_sheet 'a' is for Excel files"):
        read_table(table, "type", labels=table, labels_sheet="a")


def test_other_files_are_no_sheets(table):
    np.save(table.parent / "labels.npy", X)
    with pytest.raises(DataError, match=r"labels\.npy: labels are read from CSV, TSV, Excel or Parquet files"):
        read_table(table, labels=table.parent / "labels.npy")


def test_empty_rows_and_columns_of_a_sheet_are_left_out(table):
    text = "id,type,,\n" + "".join(f"{name},{kind},,\n" for name, kind in zip(SAMPLES, SHEET["type"], strict=True)) + ",,,\n"
    (table.parent / "labels.csv").write_text(text)
    check(read_table(table, labels=table.parent / "labels.csv", strict=True))


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_titles_above_a_sheet_are_skipped_with_a_note(table, ending):
    rows = [["Samples of March", "", ""], ["made by hand", "", ""], list(SHEET.columns), *SHEET.to_numpy().tolist()]
    file = table.parent / f"labels.{ending}"
    frame = pd.DataFrame(rows)
    frame.to_csv(file, header=False, index=False) if ending == "csv" else frame.to_excel(file, header=False, index=False)
    found = read_table(table, "type", labels=file)
    check(found)
    assert found.notes == (f"labels.{ending}: 2 lines above the table were skipped, first 'Samples of March'.",)


def test_a_sheet_as_r_writes_it(table):
    """As write.table does: the header lacks the name of the first column."""
    sheet = SHEET.set_index("id")
    text = sheet.to_csv(sep="\t", quoting=2).replace('"id"\t', "", 1)
    (table.parent / "labels.txt").write_text(text)
    check(read_table(table, "type", labels=table.parent / "labels.txt"))


def test_numbers_to_predict_may_have_a_decimal_comma(table):
    numbers = [f"{i},5" for i in range(N)]
    found = read(table, SHEET.assign(type=numbers), task="regression")
    assert found.y.tolist() == [i + 0.5 for i in range(N)]


# The join


def test_samples_in_both_are_used_and_both_sides_are_told(table):
    sheet = pd.concat([SHEET.drop(index=[2, 7]), pd.DataFrame({"id": ["T1"], "type": ["w"], "donor": ["x"]})])
    found = read(table, sheet, groups="donor")
    kept = [i for i in range(N) if i not in (2, 7)]
    check(found, kept)
    told = (
        "labels.csv: 2 of 12 samples of table.csv have no label ('Probe 2', 'Probe 7') and 1 label no sample ('T1'): the 10 "
        "in both are used"
    )
    assert found.notes == (f"{told} (--join inner).",)
    assert found.choices == {"labels.csv": {"join": "inner"}}
    said = read(table, sheet, join="inner", strict=True)
    check(said, kept)
    assert (said.notes, said.choices) == ((f"{told}.",), {})
    assert f"{told}, and --strict forbids to guess. Say so with --join inner" in refuse(table, sheet, strict=True)
    message = refuse(table, sheet, join="exact")
    assert (
        "no label for 2 of 12 samples of table.csv ('Probe 2', 'Probe 7') and 1 labels for samples that are not" in message
    )
    assert "(--join inner)" in message


def test_labels_of_other_samples_are_left_out(table):
    sheet = pd.concat([SHEET, SHEET.assign(id=[f"T{i}" for i in range(N)])])
    found = read(table, sheet)
    check(found)
    told = "12 labels have no sample in table.csv ('T0', 'T1', 'T2', 'T3', 'T4', ...): the 12 in both are used"
    assert found.notes == (f"labels.csv: {told} (--join inner).",)


@pytest.mark.parametrize(
    "spell",
    [str.upper, lambda name: name.replace(" ", "_"), lambda name: f"  {name}", lambda name: f"/a b/{name}.sorted.bam"],
)
def test_names_that_differ_in_spelling_match(table, spell):
    sheet = SHEET.assign(id=SHEET["id"].map(spell)).sample(frac=1, random_state=1)
    found = read(table, sheet)
    check(found)
    assert "12 of 12 names differ from those of table.csv" in found.notes[0]
    assert f"'Probe 0' / {spell('Probe 0')!r}" in found.notes[0]
    assert found.notes[0].endswith("and are matched (--join near).")
    assert read(table, sheet, join="near", strict=True).notes == ()
    for rule in ("exact", "inner"):
        message = refuse(table, sheet, join=rule)
        assert "no label for 12 of 12 samples of table.csv" in message
        assert f"match also names such as 'Probe 0' / {spell('Probe 0')!r}, " in message
        assert "(--join near)" in message


def test_names_of_r_match(table):
    names = [f"{i}-A" for i in range(N)]
    pd.DataFrame(X, index=[f"X{i}.A" for i in range(N)]).to_csv(table)
    assert read(table, SHEET.assign(id=names)).y.tolist() == SHEET["type"].tolist()


def test_fewer_than_half_are_refused_with_names_of_both_sides(table):
    sheet = SHEET.assign(id=[*SAMPLES[:5], *(f"T{i}" for i in range(7))])
    message = refuse(table, sheet)
    assert "no label for 7 of 12 samples of table.csv ('Probe 5'," in message
    assert "7 labels for samples that are not in table.csv ('T0'," in message
    assert message.endswith("Make the names the same, or use those in both (--join inner).")
    check(read(table, sheet, join="inner"), range(5))
    assert "Make the names the same." in refuse(table, SHEET.assign(id=[f"T{i}" for i in range(N)]), join="inner")
    check(read(table, SHEET.assign(id=[*SAMPLES[:6], *(f"T{i}" for i in range(6))])), range(6))


def test_a_sheet_that_names_features_gives_the_hint_at_the_orientation(table):
    message = refuse(table, pd.DataFrame({"id": ["a", "b", "c"], "type": [*"uvu"]}), samples_in="rows")
    assert "--samples-in columns" in message
    pd.read_csv(table, index_col=0).T.to_csv(table.parent / "turned.csv")
    found = read(table.parent / "turned.csv", SHEET, samples_in="columns")
    check(found)
    message = refuse(table, SHEET, samples_in="columns")
    assert "If its samples are in rows, leave --samples-in out." in message


def test_numbers_about_genes_beside_the_samples_are_left_out(table):
    genes = pd.read_csv(table, index_col=0).T
    genes.insert(0, "length", [100, 200, 300])
    genes.to_csv(table.parent / "turned.csv")
    found = read(table.parent / "turned.csv", SHEET, samples_in="columns")
    check(found)
    assert "1 of 13 samples of turned.csv has no label ('length'): the 12 in both are used" in found.notes[0]


@pytest.mark.parametrize("target", ["type", None])
def test_the_column_of_the_names_is_found(table, target):
    sheet = SHEET[["type", "id"]] if target is None else SHEET.assign(nr=range(N))[["nr", "type", "donor", "id"]]
    found = read(table, sheet, target)
    check(found)
    assert found.notes == ("labels.csv: the sample names are in column 'id'.",)
    assert "the sample names are in column 'id', and --strict forbids to guess" in refuse(table, sheet, target, strict=True)


def test_repeated_rows_must_agree_on_the_samples_of_the_table(table):
    others = pd.DataFrame({"id": ["T", "T"], "type": ["u", "v"], "donor": ["d", "d"]})
    found = read(table, pd.concat([SHEET, SHEET.iloc[:3], others]), groups="donor", join="inner")
    check(found)
    twice = pd.concat([SHEET, SHEET.iloc[[4]].assign(type="v")])
    message = refuse(table, twice)
    assert "1 sample names occur more than once with different labels: 'Probe 4'; 'Probe 4' has 'u', 'v'." in message
    torn = pd.concat([SHEET, SHEET.iloc[[4]].assign(donor="z")])
    check(read(table, torn))
    assert "'Probe 4' has 'u d2', 'u z'" in refuse(table, torn, groups="donor")


def test_numbers_that_name_the_samples_are_no_feature(table):
    numbers = np.random.default_rng(1).permutation(np.arange(100, 100 + N))
    pd.DataFrame({"patient": numbers, "a": X[:, 0], "b": X[:, 1]}).to_csv(table, index=False)
    found = read(table, SHEET.assign(id=numbers).sample(frac=1, random_state=2))
    assert found.feature_names == ["a", "b"]
    assert found.y.tolist() == SHEET["type"].tolist()
    assert found.sample_names == [str(number) for number in numbers]
    assert found.notes[0].startswith("table.csv: the first column 'patient' holds the sample names of labels.csv")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_samples_are_dropped_from_every_kind_of_matrix(tmp_path, kind, in_blocks):
    adata = anndata.AnnData(kind(X), pd.DataFrame({"donor": SHEET["donor"].tolist()}, index=SAMPLES))
    adata.write_h5ad(tmp_path / "a.h5ad")
    kept = [0, 3, 4, 5, 8, 10, 11]
    SHEET.iloc[kept].to_csv(tmp_path / "labels.csv", index=False)
    options = {"in_blocks": True, "max_memory": 2**28} if in_blocks else {}
    with pytest.MonkeyPatch.context() as patch:
        if in_blocks:
            patch.setattr("l20fs.data.readers.h5ad.stays_in_file", lambda *_: True)
        found = read_table(tmp_path / "a.h5ad", "type", labels=tmp_path / "labels.csv", groups="donor", **options)
    assert is_dask(found.X) == in_blocks
    values = found.X[:, np.arange(3)]
    values = values.compute() if in_blocks else values
    np.testing.assert_array_equal(values.toarray() if sp.issparse(values) else values, X[kept])
    assert found.y.tolist() == SHEET["type"][kept].tolist()
    assert found.groups.tolist() == SHEET["donor"][kept].tolist()


def test_lines_in_messages_are_those_of_the_file(table):
    frame = pd.read_csv(table, index_col=0)
    frame.iloc[5, 1] = np.inf
    frame.to_csv(table)
    with pytest.raises(DataError, match=re.escape("column 'b', line 7")):
        read(table, SHEET.drop(index=[0, 1]))


def test_an_ending_that_all_names_of_one_side_have_is_no_difference(tmp_path):
    """The counts of Brooks et al. (2011) have columns treated1, ..., and their sample sheet treated1fb, ..."""
    names = ["treated1", "treated2", "treated10", "untreated1"]
    counts = tmp_path / "counts.tsv"
    genes = "".join(f"g{j}\t{j}\t{j + 1}\t{j + 2}\t{j + 5}\n" for j in range(3))
    counts.write_text("\t".join(["gene_id", *names]) + "\n" + genes)
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("file,type\n" + "".join(f"{name}fb,{name[:2]}\n" for name in reversed(names)))
    for options in ({}, {"samples_in": "columns", "join": "near"}):
        table = read_table(counts, "type", labels=sheet, **options)
        assert (table.sample_names, table.y.tolist()) == (names, ["tr", "tr", "tr", "un"])
        np.testing.assert_array_equal(table.X[:, 0], [0, 1, 2, 5])
        assert len(table.notes) == (0 if options else 2)
    sheet.write_text(sheet.read_text().replace("treated10fb", "treated10x"))
    with pytest.raises(DataError, match="Make the names the same"):
        read_table(counts, "type", labels=sheet, samples_in="columns")
