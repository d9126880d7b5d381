"""Labels: in a column, or in a second file that is joined by names; numbers to predict."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from l20fs.tables import DataError, UnknownColumnError, read_table

N = 12
SAMPLES = [f"Probe {i}" for i in range(N)]
X = np.random.default_rng(0).normal(size=(N, 3)).round(3)
SHEET = pd.DataFrame({"id": SAMPLES, "type": [*"uv"] * (N // 2), "hospital": [f"d{i // 2}" for i in range(N)]})


@pytest.fixture
def read(tmp_path):
    """Read the table with a sheet of labels."""

    def read(sheet, target="type", names=SAMPLES, ending="csv", turned=False, **options):
        frame = pd.DataFrame(X, names, ["a", "b", "c"])
        (frame.T if turned else frame).to_csv(tmp_path / "table.csv")
        file = tmp_path / f"labels.{ending}"
        {"csv": sheet.to_csv, "xlsx": sheet.to_excel, "parquet": sheet.to_parquet}[ending](file, index=False)
        return read_table(tmp_path / "table.csv", target, labels=file, **options)

    return read


def check(samples, kept=range(N)):
    """The samples have their own values, labels and groups."""
    kept = list(kept)
    assert samples.y.tolist() == SHEET["type"][kept].tolist()
    np.testing.assert_array_equal(samples.X, X[kept])
    if samples.groups is not None:
        assert samples.groups.tolist() == SHEET["hospital"][kept].tolist()


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_sheet_in_any_order_and_format(ending, turned, read):
    found = read(SHEET.sample(frac=1, random_state=0), ending=ending, turned=turned, groups="hospital")
    check(found)
    assert found.sample_names == SAMPLES
    assert any("samples are in columns" in note for note in found.notes) == turned


@pytest.mark.parametrize(
    "rename",
    [str.upper, lambda name: name.replace(" ", "_"), lambda name: f"/data/{name}.sorted.bam", lambda name: f"{name}fb"],
)
def test_names_that_differ_a_little_are_joined_and_said(rename, read):
    found = read(SHEET.assign(id=[rename(name) for name in SAMPLES]))
    check(found)
    assert any("12 of 12 names differ" in note and repr(rename("Probe 0")) in note for note in found.notes)
    with pytest.raises(DataError, match=r"input\.join=near"):
        read(SHEET.assign(id=[rename(name) for name in SAMPLES]), join="exact")


def test_two_equally_near_names_are_not_joined(read):
    more = pd.DataFrame({"id": ["PROBE_0", "probe-0"], "type": ["u", "u"], "hospital": ["d0", "d0"]})
    check(read(pd.concat([SHEET[1:], more])), range(1, N))


def test_a_prefix_of_the_columns_is_stripped(read, tmp_path):
    """As in protein groups of MaxQuant, with columns of several kinds."""
    found = read(SHEET, names=[f"LFQ intensity {name}" for name in SAMPLES], turned=True)
    check(found)
    assert any("'LFQ intensity '" in note for note in found.notes)
    kinds = {f"{kind} {name}": X[i] for kind in ("Intensity", "LFQ intensity", "Peptides") for i, name in enumerate(SAMPLES)}
    frame = pd.DataFrame(kinds, ["a", "b", "c"]).rename_axis("Protein IDs")
    text = frame.assign(Score=[1.5, 2.5, 3.5]).to_csv(sep="\t")
    (tmp_path / "proteinGroups.txt").write_text(text.replace("\n", "\t\n"))
    SHEET.to_csv(tmp_path / "sheet.csv", index=False)
    check(read_table(tmp_path / "proteinGroups.txt", "type", labels=tmp_path / "sheet.csv"))
    frame.drop(columns=[name for name in kinds if name.startswith("LFQ")]).to_csv(tmp_path / "two.csv")
    with pytest.raises(DataError, match=r"several kinds of columns.*Peptides.*--ignore"):
        read_table(tmp_path / "two.csv", "type", labels=tmp_path / "sheet.csv")
    check(read_table(tmp_path / "two.csv", "type", labels=tmp_path / "sheet.csv", ignore=["Peptides*"]))


def test_a_join_of_few_is_said_and_one_of_almost_none_stops(read, tmp_path):
    found = read(SHEET[:3].assign(id=["Probe 0", "Probe 1", "Probe 2"], type=["u", "v", "u"]))
    check(found, range(3))
    assert any("9 of 12 samples" in note and "only the 3 in both" in note for note in found.notes)
    names = [f"T{i}" for i in range(200)]
    pd.DataFrame({"a": range(200), "b": range(200, 400)}, ["Probe 0", *names[1:]]).to_csv(tmp_path / "t.csv")
    pd.DataFrame({"id": ["Probe 0", *[f"S{i}" for i in range(1, 200)]], "type": ["u", "v"] * 100}).to_csv(
        tmp_path / "s.csv", index=False
    )
    with pytest.raises(DataError, match=r"too few to be no accident.*input\.join=inner"):
        read_table(tmp_path / "t.csv", "type", labels=tmp_path / "s.csv")
    found = read_table(tmp_path / "t.csv", None, labels=tmp_path / "s.csv", need_labels=False, join="inner", needed={"a"})
    assert found.sample_names == ["Probe 0"]


def test_bare_numbers_that_count_are_no_names(read):
    numbers = [str(i) for i in range(N)]
    check(read(SHEET.assign(id=numbers), names=numbers))
    with pytest.raises(DataError, match="bare numbers that count the samples"):
        read(SHEET.assign(id=[str(i) for i in range(3, N + 3)]), names=numbers)


@pytest.mark.parametrize(("rule", "kept"), [("inner", range(3, N)), ("exact", None), (None, range(3, N))])
def test_joins(rule, kept, read):
    sheet = pd.concat([SHEET[3:], pd.DataFrame({"id": ["Probe 99"], "type": ["u"], "hospital": ["d9"]})])
    if kept is None:
        with pytest.raises(DataError, match=r"no label for 3 of 12 samples.*'Probe 0'.*'Probe 99'"):
            read(sheet, join=rule)
    else:
        found = read(sheet, join=rule)
        check(found, kept)
        assert any("3 of 12 samples" in note and "'Probe 99'" in note for note in found.notes)


def test_lines_of_one_sample_must_agree(read):
    check(read(pd.concat([SHEET, SHEET[:2]])))
    with pytest.raises(DataError, match=r"1 sample names occur more than once with different labels: 'Probe 0'"):
        read(pd.concat([SHEET, SHEET[:1].assign(type="v")]))


def test_labels_without_names_are_taken_in_order(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(SHEET["type"]) + "\n")
    found = read_table(tmp_path / "x.npy", labels=tmp_path / "y.txt")
    np.testing.assert_array_equal(found.X, X)
    assert found.y.tolist() == SHEET["type"].tolist()
    (tmp_path / "y.txt").write_text("u\nv\n")
    with pytest.raises(DataError, match="2 labels, but 12 samples"):
        read_table(tmp_path / "x.npy", labels=tmp_path / "y.txt")


def test_titles_and_the_sheet_of_a_workbook(tmp_path):
    pd.DataFrame(X, SAMPLES, ["a", "b", "c"]).to_csv(tmp_path / "t.csv")
    (tmp_path / "s.csv").write_text("All samples of March\n\n" + SHEET.to_csv(index=False))
    found = read_table(tmp_path / "t.csv", "type", labels=tmp_path / "s.csv")
    check(found)
    assert any("above the table" in note for note in found.notes)
    with pd.ExcelWriter(tmp_path / "s.xlsx") as book:
        pd.DataFrame({"Key": ["u"], "Meaning": ["normal"]}).to_excel(book, sheet_name="Legend", index=False)
        SHEET.to_excel(book, sheet_name="Mine", index=False)
    found = read_table(tmp_path / "t.csv", "type", labels=tmp_path / "s.xlsx")
    check(found)
    assert any("'Legend', 'Mine'; 'Mine' was read" in note for note in found.notes)
    check(read_table(tmp_path / "t.csv", "type", labels=tmp_path / "s.xlsx", labels_sheet="Mine"))


def test_a_column_of_patients_suggests_groups(read):
    found = read(SHEET.rename(columns={"hospital": "Patient ID"}))
    assert any("'Patient ID' has 6 different values" in note and "--groups" in note for note in found.notes)


def frame_of(cells):
    return pd.DataFrame({"a": X[: len(cells), 0], "y": cells})


def from_csv(tmp_path, cells, **options):
    frame_of(cells).to_csv(tmp_path / "a.csv", index=False)
    return read_table(tmp_path / "a.csv", "y", **options)


def test_samples_without_a_label_are_left_out_and_said(tmp_path):
    found = from_csv(tmp_path, ["u", "NA", "v", "", "u", "v", "none", "none"])
    assert found.y.tolist() == ["u", "v", "u", "v", "none", "none"]
    np.testing.assert_array_equal(found.X[:, 0], X[[0, 2, 4, 5, 6, 7], 0])
    assert any("2 of 8 samples have no 'y' ('NA'), first in line 3" in note for note in found.notes)


def test_labels_stay_verbatim_and_spellings_are_said(tmp_path):
    found = from_csv(tmp_path, ["NB", "NB ", "nb", "01", "1", "NB", "01", "1", "NB", "nb"])
    assert found.y.tolist() == ["NB", "NB ", "nb", "01", "1", "NB", "01", "1", "NB", "nb"]
    assert any("differ only in case or blanks: 'NB' (3), 'NB ' (1), 'nb' (2)" in note for note in found.notes)


REFUSED = [
    (["1.5", "2.5", "3.5", "4.5"], {}, "--task regression"),
    (["a", "b", "c", "d"], {}, "4 different values in 4 samples"),
    (["1", "2", "x", "4"], {"task": "regression"}, "'x', first in line 4"),
    (["1", "2", "inf", "4"], {"task": "regression"}, "infinite value, in line 4"),
    (["3", "3", "3", "3"], {"task": "regression"}, "3 in all samples"),
    (["", "NA", "", ""], {}, "4 of 4 samples have no 'y'"),
    (["u" * 1001, "v", "u", "v"], {}, "1001 characters in line 2"),
]


@pytest.mark.parametrize(("cells", "options", "words"), REFUSED)
def test_targets_that_cannot_be_used(cells, options, words, tmp_path):
    with pytest.raises(DataError) as caught:
        from_csv(tmp_path, cells, **options)
    assert words in str(caught.value)


def test_numbers_to_predict(tmp_path):
    (tmp_path / "a.csv").write_text("a;y\n1;1,5\n2;2\n3;\n4;1.234,5\n")
    found = read_table(tmp_path / "a.csv", "y", task="regression")
    assert (found.y.tolist(), found.X[:, 0].tolist()) == ([1.5, 2.0, 1234.5], [1.0, 2.0, 4.0])
    with pytest.raises(UnknownColumnError, match="numbers to predict"):
        read_table(tmp_path / "a.csv", task="regression")
