from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import DATA
from scipy.io import savemat

from l20fs.data import MissingDataError, containers, import_dataset, load_dataset, load_srbct, paper_sets
from l20fs.data.catalogue import CatalogueEntry, content_digest
from l20fs.data.readers import DataError, UnknownColumnError
from l20fs.data.store import check_name

NAMES = ["brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct"]
PRINTED = [
    (42, 5597, 5),
    (95, 4869, 3),
    (38, 3051, 2),
    (203, 3312, 5),
    (62, 4026, 3),
    (61, 5244, 8),
    (102, 6033, 2),
    (63, 2308, 4),
]

CLASSES = ("wild", "10", "9")  # neither by alphabet nor by number
CODES = np.array([0, 2, 1, 0, 2, 0])
X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32).astype(np.float64)


def slow_digest(X, codes):
    """The hash as the catalogue states it, number by number."""
    digest = hashlib.sha256()
    for row in X:
        for value in row:
            digest.update(struct.pack("<f", value))
    for code in codes:
        digest.update(struct.pack("<q", code))
    return digest.hexdigest()


def make_entry(name="tiny", **facts):
    common = {"title": "t", "reference": "r", "scale": "s", "source": "a shelf", "paper_shape": X.shape}
    known = {
        "n_samples": 6,
        "n_features": 4,
        "class_names": CLASSES,
        "class_sizes": (3, 1, 2),
        "sha256": slow_digest(X, CODES),
    }
    return CatalogueEntry(name=name, **common | known | facts)


@pytest.fixture
def tiny(monkeypatch):
    """A set of the catalogue that is made here."""
    entry = make_entry()
    monkeypatch.setitem(paper_sets(), "tiny", entry)
    return entry


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def write_npz(file, **arrays):
    with open(file, "wb") as stream:
        np.savez(stream, **arrays)
    return file


def write_mat(file, **variables):
    savemat(file, variables)
    return file


def write_csv(file, X, labels, separator=","):
    rows = [separator.join([*map(repr, values), str(label)]) for values, label in zip(X.tolist(), labels, strict=True)]
    text = "\n".join([separator.join([*(f"g{j}" for j in range(X.shape[1])), "class"]), *rows]) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


def refuse(call, *arguments, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def everything_in(folder):
    return {file.relative_to(folder) for file in folder.rglob("*")} if folder.exists() else set()


# What the catalogue says


def test_the_catalogue_is_the_papers_table():
    assert list(paper_sets()) == NAMES
    for entry, printed in zip(paper_sets().values(), PRINTED, strict=True):
        assert (*entry.paper_shape, len(entry.class_names)) == printed
        assert entry.exact == (entry.shape == entry.paper_shape) == (entry.name != "lung")
        assert sum(entry.class_sizes) == entry.n_samples
        assert len(set(entry.class_names)) == len(entry.class_names) == len(entry.class_sizes)
        for text in (entry.title, entry.reference, entry.scale, entry.source):
            assert text
            assert "://" not in text


@pytest.mark.parametrize("name", NAMES)
def test_the_real_files_are_recognised(paper_set, name):
    values, y = paper_set(name)
    found = load_dataset(name, DATA)
    assert found.status == ("substitute" if name == "lung" else "exact")
    assert Path(found.origin) == DATA / "paper" / f"{name}.npz"
    np.testing.assert_array_equal(found.X, np.log10(values) if name == "lung" else values)
    np.testing.assert_array_equal(found.y, y)
    assert found.X.dtype == np.float64
    assert found.X.flags.c_contiguous
    entry = paper_sets()[name]
    assert found.class_names == list(entry.class_names)
    assert np.bincount(found.y).tolist() == list(entry.class_sizes)
    assert len(found.feature_names) == values.shape[1]
    assert found.sha256 == entry.sha256


@pytest.mark.parametrize("kind", ["mat", "csv"])
@pytest.mark.parametrize("name", ["leukemia", "srbct"])
def test_a_real_set_is_recognised_from_another_kind_of_file(paper_set, tmp_path, store, name, kind):
    values, y = paper_set(name)
    if kind == "mat":
        file, target = write_mat(tmp_path / "set.mat", X=values, Y=y[:, None] + 1.0), None
    else:
        file, target = write_csv(tmp_path / "set.csv", values, np.array(paper_sets()[name].class_names)[y]), "class"
    assert import_dataset(file, name, store, target=target).status == "exact"
    np.testing.assert_array_equal(load_dataset(name, store).X, values)


# Classes, however they are spelled


# One set in many containers

SPELLINGS = {
    "from 0": CODES,
    "from 1": CODES + 1,
    "doubles": CODES + 1.0,
    "small": (CODES * 2).astype(np.uint8),
    "minus": CODES.astype(np.int8) - 1,
    "column": CODES[:, None],
    "row": CODES[None, :],
    "names": np.array(CLASSES)[CODES],
}


def check_import(file, store, target=None):
    found = import_dataset(file, "tiny", store, target=target)
    loaded = load_dataset("tiny", store)
    for one in (found, loaded):
        assert one.status == "exact"
        np.testing.assert_array_equal(one.X, X)
        np.testing.assert_array_equal(one.y, CODES)
        assert one.class_names == list(CLASSES)
        assert one.sha256 == slow_digest(X, CODES)
        assert Path(one.origin) == store / "tiny.npz"
        assert (one.X.dtype, one.y.dtype) == (np.float64, np.int64)
    assert found.feature_names == loaded.feature_names
    assert everything_in(store) == {Path("tiny.npz")}
    return loaded


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("kind", ["f4", ">f8"])
def test_npz_is_recognised(tiny, tmp_path, store, spelling, kind):
    values = np.asfortranarray(X) if kind == "fortran" else X.astype(kind)
    file = write_npz(tmp_path / "a.npz", X=values, y=SPELLINGS[spelling])
    assert check_import(file, store).feature_names == ["feature1", "feature2", "feature3", "feature4"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("names", [("X", "Y"), ("fea", "gnd"), ("data", "label"), ("x", "labels")])
def test_mat_is_recognised(tiny, tmp_path, store, spelling, names):
    check_import(write_mat(tmp_path / "a.MAT", **{names[0]: X, names[1]: SPELLINGS[spelling], "note": "other"}), store)


@pytest.mark.parametrize("labels", [CODES, CODES + 1, np.array(CLASSES)[CODES]], ids=["from 0", "from 1", "names"])
@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".tsv", "\t"), (".csv.gz", ";")])
def test_tables_are_recognised(tiny, tmp_path, store, labels, ending, separator):
    loaded = check_import(write_csv(tmp_path / f"a{ending}", X, labels, separator), store, target="class")
    assert loaded.feature_names == ["g0", "g1", "g2", "g3"]


# The paper's shape where the catalogue has a substitute


@pytest.fixture
def substitute(monkeypatch):
    """The catalogue's copy is X, but the paper has twice as many features."""
    positive = np.abs(X) + 1.0
    entry = make_entry(differs="fewer features", paper_shape=(6, 8), log10=True, sha256=slow_digest(positive, CODES))
    monkeypatch.setitem(paper_sets(), "tiny", entry)
    return positive


def test_the_papers_own_matrix_may_come_instead_of_a_substitute(substitute, tmp_path, store):
    own = np.hstack([X, X * 1e60])
    found = import_dataset(write_npz(tmp_path / "a.npz", X=own, y=2 - CODES), "tiny", store)
    loaded = load_dataset("tiny", store)
    assert found.status == loaded.status == "unverified"
    np.testing.assert_array_equal(loaded.X, own)
    assert loaded.class_names == ["0", "1", "2"]
    assert np.bincount(loaded.y).tolist() == [2, 1, 3]
    message = refuse(import_dataset, write_npz(tmp_path / "b.npz", X=own, y=[0, 0, 1, 1, 2, 2]), "tiny", store)
    assert "6 x 8 values, but 'tiny' has 6 x 4 (in the paper 6 x 8)" in message


# What is not the catalogue's


@pytest.mark.parametrize(
    ("values", "y", "message"),
    [
        (X[:, :3], CODES, "a.npz: 6 x 3 values, but 'tiny' has 6 x 4. A set of your own needs another name."),
        (X[:5], CODES[:5], "5 x 4 values, but 'tiny' has 6 x 4"),
        (X, np.sort(CODES) // 2, "the classes have [4, 2] samples, but 'tiny' has [3, 1, 2]"),
        (X + 1, CODES, "the shape of 'tiny', but other values, or samples in another order: content sha256"),
        (X[::-1], CODES[::-1], "or samples in another order"),
        (X, CODES[::-1], "but other values"),
        (X, 2 - CODES, "but other values"),
    ],
)
def test_other_values_are_refused_under_a_name_of_the_catalogue(tiny, tmp_path, store, values, y, message):
    file = write_npz(tmp_path / "a.npz", X=values, y=y)
    assert message in refuse(import_dataset, file, "tiny", store)
    assert not store.exists()
    write_npz(tmp_path / "tiny.npz", X=values, y=y)
    assert message.removeprefix("a.npz") in refuse(load_dataset, "tiny", tmp_path)
    assert import_dataset(file, "tiny-own", store).status == "own"


# What cannot be a data set


class Canary:
    """Creates a file when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.parametrize("place", ["X", "y", "class_names", "npy", "pickle", "mat", "csv", "pkl"])
def test_nothing_is_unpickled(tmp_path, store, place):
    canary = tmp_path / "canary"
    payload = np.array([Canary(canary)], dtype=object)
    ending = place if place in ("mat", "csv", "pkl") else "npz"
    file, stream = tmp_path / f"mine.{ending}", io.BytesIO()
    if place in ("X", "y", "class_names"):
        np.savez(stream, allow_pickle=True, **{"X": X, "y": CODES} | {place: payload})
    elif place == "npy":
        np.save(stream, payload, allow_pickle=True)
    else:
        pickle.dump(payload, stream)
    file.write_bytes(stream.getvalue())
    assert f"mine.{ending}" in refuse(import_dataset, file, "mine", store, target="y" if ending in ("csv", "pkl") else None)
    if ending == "npz":
        refuse(load_dataset, "mine", tmp_path)
    assert not canary.exists()
    if ending == "npz" and place != "pickle":
        np.load(file, allow_pickle=True)[place if place != "npy" else 0]
    else:
        pickle.loads(file.read_bytes())
    assert canary.exists()  # it would have been seen


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": X, "Y": np.array([["a"], ["b"]] * 3, dtype=object)}, "Y is a cell"),
        ({"X": {"values": X}, "Y": CODES}, "X is a struct"),
        ({"X": "text", "Y": CODES}, "the values are <U4"),
        ({"X": sp.csc_array(X), "Y": CODES}, "X is a sparse; it must be a full matrix"),
        ({"X": X * 1j, "Y": CODES}, "X is a complex"),
        ({"X": X, "other": CODES}, "holds 'X', 'other', but no labels"),
    ],
)
def test_odd_variables_of_mat_are_refused(tmp_path, store, variables, message):
    assert message in refuse(import_dataset, write_mat(tmp_path / "a.mat", **variables), "mine", store)


def whole_file(kind):
    stream = io.BytesIO()
    if kind == "npz":
        np.savez_compressed(stream, X=X, y=CODES, class_names=np.array(CLASSES))
    else:
        savemat(stream, {"X": X, "Y": CODES[:, None]}, do_compression=kind == "mat zlib")
    return stream.getvalue()


WHOLE = {kind: whole_file(kind) for kind in ("npz", "mat", "mat zlib")}


@pytest.mark.parametrize("kind", WHOLE)
def test_truncated_files_are_refused(tmp_path, store, kind):
    file = tmp_path / f"a.{kind.split()[0]}"
    for size in range(len(WHOLE[kind]) - 1):
        file.write_bytes(WHOLE[kind][:size])
        try:
            found = containers.read_labelled(file)
        except DataError as error:
            assert str(error).startswith(file.name)  # noqa: PT017
        else:  # only where nothing but filling is cut off
            assert kind.startswith("mat")
            np.testing.assert_array_equal(found.X, X)


@pytest.mark.parametrize(("name", "target"), [("a.npz", "class"), ("a.mat", "class")])
def test_a_target_is_for_tables(tmp_path, store, name, target):
    (tmp_path / name).write_bytes(WHOLE[name[2:]])
    assert "Leave it out" in refuse(import_dataset, tmp_path / name, "mine", store, target=target)


def test_tables_need_a_target_that_is_there(tmp_path, store):
    file = write_csv(tmp_path / "a.csv", X, CODES)
    assert "--target" in refuse(import_dataset, file, "mine", store, kind=UnknownColumnError)
    assert "'klass'" in refuse(import_dataset, file, "mine", store, target="klass", kind=UnknownColumnError)


# Names and places

BAD_NAMES = [
    "../../etc/x",
    "a/b",
    "/tmp/x",
    "..",
    ".",
    "",
    "x\0",
    "a" * 300,
    "a" * 65,
    "A",
    "a b",
    "a.npz",
    "-a",
    "é",
    "a\n",
    "\\x",
    "C:x",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_is_never_a_path(tmp_path, name):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    file = write_npz(tmp_path / "a.npz", X=X, y=CODES)
    before = everything_in(tmp_path)
    for call, arguments in (
        (check_name, (name,)),
        (load_dataset, (name, tmp_path)),
        (import_dataset, (file, name, tmp_path / "deep" / "er")),
    ):
        message = refuse(call, *arguments)
        assert "is no name for a data set" in message
        assert len(message) < 250
    assert everything_in(tmp_path) == before


# What is missing, and what is there already


@pytest.mark.parametrize("name", [name for name in NAMES if name != "srbct"])
def test_a_missing_set_is_said_with_where_it_can_be_had(store, name):
    message = refuse(load_dataset, name, store, kind=MissingDataError)
    for text in (repr(name), str(store), paper_sets()[name].source, f"l20fs data import FILE --as {name}"):
        assert text in message


def test_an_unknown_set_is_said_with_the_known_ones(store):
    message = refuse(load_dataset, "brian", store, kind=MissingDataError)
    assert "brain, breast3" in message
    assert "l20fs data import FILE --as brian" in message


def test_srbct_works_out_of_the_box(store):
    found, tumours = load_dataset("srbct", store), load_srbct(scale="paper")
    assert (found.status, found.origin) == ("built-in", "built-in")
    np.testing.assert_array_equal(found.X, tumours.data)
    assert np.array(found.class_names)[found.y].tolist() == tumours.target.tolist()
    entry = paper_sets()["srbct"]
    assert found.X.shape == entry.shape
    assert np.bincount(found.y).tolist() == list(entry.class_sizes)
    assert found.sha256 == content_digest(found.X, found.y) != entry.sha256


def test_the_built_in_srbct_is_the_papers_in_another_order(store, paper_set):
    found, (values, y) = load_dataset("srbct", store), paper_set("srbct")
    distances = np.abs(found.X[:, None, :] - values[None]).mean(axis=2)
    assert sorted(distances.argmin(axis=1)) == list(range(63))
    np.testing.assert_array_equal(found.y, y[distances.argmin(axis=1)])
    assert distances.min(axis=1).max() < 1e-2


def test_what_is_there_is_left_as_it_is(tiny, tmp_path, store):
    file = write_npz(tmp_path / "a.npz", X=X, y=CODES)
    import_dataset(file, "tiny", store)
    place = store / "tiny.npz"
    before = place.read_bytes(), place.stat().st_mtime_ns
    assert import_dataset(write_mat(tmp_path / "a.mat", X=X, Y=CODES), "tiny", store).status == "exact"
    assert (place.read_bytes(), place.stat().st_mtime_ns) == before
    import_dataset(file, "mine", store)
    for other in ({"X": X + 1e-9, "y": CODES}, {"X": X, "y": 2 - CODES}, {"X": X, "y": np.array(list("abc"))[CODES]}):
        assert "holds something else" in refuse(import_dataset, write_npz(tmp_path / "b.npz", **other), "mine", store)
    place.write_bytes(b"damaged")
    assert "Move it away" in refuse(import_dataset, file, "tiny", store)
    assert place.read_bytes() == b"damaged"


def test_an_import_gives_the_same_bytes_every_time(tiny, tmp_path):
    first = write_npz(tmp_path / "a.npz", X=X, y=CODES)
    second = write_mat(tmp_path / "a.mat", fea=X, gnd=CODES + 1.0)
    written = []
    for number, file in enumerate((first, first, second)):
        import_dataset(file, "tiny", tmp_path / str(number))
        written.append((tmp_path / str(number) / "tiny.npz").read_bytes())
    assert len(set(written)) == 1
