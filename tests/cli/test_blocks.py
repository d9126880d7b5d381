"""Files that are larger than the memory they may take: read in blocks, with the answer of the whole table."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from cli_samples import RESULTS, contents, page_data, read_tsv
from platforms import needs_posix

from l20fs.blocks import FileBlocks, open_large
from l20fs.blocks.file_guard import ChangedFileError, FileGuard
from l20fs.cli import run
from l20fs.data.readers import DataError, limits, read_table

N_CELLS, N_GENES = 90, 24
DONORS = np.array([f"donor {i % 6}" for i in range(N_CELLS)])
GENES = [f"gene {j}" for j in range(N_GENES)]


def counts(dtype=np.float32):
    rng = np.random.default_rng(0)
    y = np.arange(N_CELLS) % 3
    X = rng.poisson(1.0, (N_CELLS, N_GENES)) + rng.poisson(4.0, (N_CELLS, 1)) * (rng.random((N_CELLS, N_GENES)) < 0.1)
    X[:, 3:6] += rng.poisson(3.0, (N_CELLS, 3)) * np.eye(3, dtype=int)[y]
    return X.astype(dtype), np.array(["B cell", "NK", "T cell"])[y]


def adata_of(X, y):
    obs = pd.DataFrame({"type": pd.Categorical(y), "donor": DONORS}, index=[f"cell {i}" for i in range(len(y))])
    adata = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=GENES))
    adata.layers["twice"] = 2 * X
    return adata


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    X, y = counts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata_of(sp.csr_array(X), y).write_h5ad(folder / "csr.h5ad")
        adata_of(sp.csc_array(X), y).write_h5ad(folder / "csc.h5ad")
        adata_of(X.astype(np.int64), y).write_h5ad(folder / "dense.h5ad")
        adata_of(sp.csr_array(X), y).write_zarr(folder / "cells.zarr")
    np.save(folder / "rows.npy", X)
    np.save(folder / "columns.npy", X.T)
    zarr.create_array(folder / "array.zarr", data=X, chunks=(20, N_GENES))
    (folder / "labels.txt").write_text("\n".join(y) + "\n")
    return folder


ANNDATA = {"target": "type", "groups": "donor"}
FILES = {
    "csr.h5ad": ANNDATA,
    "csc.h5ad": ANNDATA,
    "dense.h5ad": ANNDATA,
    "cells.zarr": ANNDATA,
    "rows.npy": {"labels": "labels.txt"},
    "columns.npy": {"labels": "labels.txt", "samples_in": "columns"},
    "array.zarr": {"labels": "labels.txt"},
}


def reading(folder, name):
    return {key: folder / value if key == "labels" else value for key, value in FILES[name].items()}


def arguments(folder, name):
    given = reading(folder, name).items()
    return [str(folder / name), *(text for key, value in given for text in (f"--{key.replace('_', '-')}", str(value)))]


@pytest.fixture
def tight(monkeypatch):
    """Let every file be too large, and cut it into blocks of a few lines."""
    monkeypatch.setattr(limits, "WORK", 10**9)
    monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", 3000)


def select(folder, output, name, *more, code=0):
    assert run(["select", *arguments(folder, name), "-k", "5", "-o", str(output), *more]) == code
    return read_tsv(output / "selection.tsv") if code == 0 else None


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_is_read_in_blocks(folder, name, tight):
    expected = read_table(folder / name, **reading(folder, name))
    table = read_table(folder / name, **reading(folder, name), in_blocks=True)
    assert isinstance(table.X, FileBlocks)
    assert len(table.X.edges) > 3
    assert table.X.dtype == expected.X.dtype
    columns = np.array([4, 0, 20])
    found = table.X[:, columns]
    whole = expected.X.toarray() if sp.issparse(expected.X) else expected.X
    np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, whole[:, columns])
    assert (table.y == expected.y).all()
    assert table.feature_names == expected.feature_names
    assert table.sha256 == expected.sha256
    assert not isinstance(read_table(folder / name, **reading(folder, name)).X, FileBlocks), "nobody asked for blocks"


@pytest.mark.parametrize("name", FILES)
def test_some_features_of_a_file_in_blocks_are_in_memory(folder, name, tight):
    whole = read_table(folder / name, **reading(folder, name))
    given = {"samples_in": "columns"} if name == "columns.npy" else {}
    for wanted in (whole.feature_names[3:9:2], whole.feature_names):
        table = read_table(folder / name, **given, in_blocks=True, need_labels=False, needed=wanted)
        assert not isinstance(table.X, FileBlocks)
        found, expected = (X.toarray() if sp.issparse(X) else X for X in (table.X, whole.X))
        places = [whole.feature_names.index(feature) for feature in table.feature_names]
        np.testing.assert_array_equal(found, expected[:, places])


@pytest.mark.parametrize("name", FILES)
def test_features_are_left_out_of_a_file_that_stays_in_blocks(folder, name, tight, tmp_path):
    whole = read_table(folder / name, **reading(folder, name))
    ignored = [whole.feature_names[place] for place in (0, 7, 8, 23)]
    table = read_table(folder / name, **reading(folder, name), in_blocks=True, ignore=ignored)
    assert isinstance(table.X, FileBlocks)
    assert table.others == ignored
    kept = [place for place in range(N_GENES) if place not in (0, 7, 8, 23)]
    assert table.feature_names == [whole.feature_names[place] for place in kept]
    found, expected = (X.toarray() if sp.issparse(X) else X for X in (table.X[:, np.arange(len(kept))], whole.X))
    np.testing.assert_array_equal(found, expected[:, kept])


@pytest.mark.parametrize("name", ["csc.h5ad", "columns.npy"])
def test_what_is_left_out_of_blocks_changes_the_result_as_in_memory(folder, name, monkeypatch, tmp_path):
    ignored = ",".join(read_table(folder / name, **reading(folder, name)).feature_names[:2])
    expected = select(folder, tmp_path / "whole", name, "--ignore", ignored)
    monkeypatch.setattr(limits, "WORK", 10**9)
    monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", 3000)
    found = select(folder, tmp_path / "blocks", name, "--ignore", ignored)
    assert [row["feature"] for row in found] == [row["feature"] for row in expected]


@pytest.mark.parametrize("name", FILES)
def test_the_result_is_that_of_the_whole_table(folder, tmp_path, name, monkeypatch, capsys):
    """Selection, accuracy, weights, substitutes, means and resamples; numbers to the digits that blocks may change."""
    more = ("--log", "--stability", "4")
    more += {"csr.h5ad": ("--n-jobs", "2", "-k", "best"), "csc.h5ad": ("-k", "best")}.get(name, ())
    whole = tmp_path / "whole"
    assert run(["select", *arguments(folder, name), "-o", str(whole), *more]) == 0
    monkeypatch.setattr(limits, "WORK", 10**9)
    monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", 3000)
    capsys.readouterr()
    blocks = tmp_path / "blocks"
    assert run(["select", *arguments(folder, name), "-o", str(blocks), *more, "--max-memory", "9G"]) == 0
    said = capsys.readouterr().err
    assert f"work on {name} in memory would take more than the 9.0 GiB of --max-memory: it is read in blocks" in said
    assert said.count(" blocks of ") == 1
    for file in ("selection.tsv", "cv.tsv", "stability.tsv"):
        expected, found = (pd.read_csv(folder / file, sep="\t") for folder in (whole, blocks))
        pd.testing.assert_frame_equal(found, expected, check_exact=False, rtol=1e-4)
    pages = [page_data(place) for place in (whole, blocks)]
    for key in ("features", "confusion", "substitutes", "strips"):
        assert pages[1][key] == pages[0][key], key
    assert contents(blocks).keys() == RESULTS | {"stability.tsv"}


def test_layers_and_other_solvers(folder, tmp_path, tight):
    plain = select(folder, tmp_path / "x", "csr.h5ad", "--scale", "none", "--ridge", "0")
    twice = select(folder, tmp_path / "layer", "csr.h5ad", "--layer", "twice", "--scale", "none", "--ridge", "0")
    assert [row["feature"] for row in plain] == [row["feature"] for row in twice]
    for column in ("coef_NK", "coef_B cell"):
        np.testing.assert_allclose([float(r[column]) for r in plain], [2 * float(r[column]) for r in twice], rtol=1e-3)
    assert len(select(folder, tmp_path / "ahiht", "csc.h5ad", "--method", "ahiht", "--include", "gene 1")) == 5


def test_methods_that_need_the_table_get_it_or_say_so(folder, tmp_path, tight, capsys):
    assert len(select(folder, tmp_path / "fisher", "rows.npy", "--method", "FisherScore")) == 5
    assert "blocks" not in capsys.readouterr().err
    assert run(["select", *arguments(folder, "rows.npy"), "--method", "FisherScore", "--max-memory", "1K"]) == 3
    assert "rows.npy: needs about" in capsys.readouterr().err


def test_too_little_memory_even_for_blocks(folder, tight, capsys):
    assert run(["select", *arguments(folder, "csr.h5ad"), "--max-memory", "30K"]) == 3
    wanted = r"csr\.h5ad: work on it takes about .* In blocks \d+\.\d [MG]iB would do, but 30\.0 KiB are allowed"
    assert re.search(wanted, capsys.readouterr().err)


def test_what_the_program_takes_counts(folder, tight):
    table = read_table(folder / "rows.npy", labels=folder / "labels.txt", in_blocks=True, max_memory=2**30, in_use=2**29)
    assert table.X.budget == 2**28
    assert not isinstance(
        read_table(folder / "rows.npy", labels=folder / "labels.txt", in_blocks=True, max_memory=2**28, in_use=2**28).X,
        FileBlocks,
    )


def test_a_limit_that_will_do_for_the_table_but_not_for_blocks(folder, tmp_path, monkeypatch, capsys):
    """Blocks need more than a small table does."""
    select(folder, tmp_path / "out", "csr.h5ad", "--max-memory", "200K")
    assert "blocks" not in capsys.readouterr().err


def test_memory_that_is_free_decides_where_nothing_is_said(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(limits, "WORK", 10**5)
    monkeypatch.setattr(limits, "available_memory", lambda: 2**29)
    select(folder, tmp_path / "out", "csr.h5ad")
    assert "would take more than the memory that is free" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "missing"), (-np.inf, "infinite")])
def test_values_that_are_not_finite_are_named(tmp_path, kind, value, word, tight, capsys):
    X, y = counts()
    X[80, 7] = X[85, 2] = value
    make = {"csr": sp.csr_array, "csc": sp.csc_array, "dense": np.asarray}[kind]
    adata_of(make(X), y).write_h5ad(tmp_path / "x.h5ad")
    assert run(["select", str(tmp_path / "x.h5ad"), "--target", "type", "-o", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert f"x.h5ad: 2 {word} values, first in column 'gene 2', sample 'cell 85'" in said
    assert ("read in blocks" in said) == (word == "missing")
    assert not (tmp_path / "out").exists()


def test_logarithms_of_negative_values_are_refused(tmp_path, tight, capsys):
    X, y = counts()
    X[80, 7] = -2.5
    adata_of(sp.csr_array(X), y).write_h5ad(tmp_path / "x.h5ad")
    assert run(["select", str(tmp_path / "x.h5ad"), "--target", "type", "--log"]) == 3
    assert "--log: the table has negative values, the lowest is -2.5. Leave --log out." in capsys.readouterr().err


def test_counts_are_recognised_in_a_block(tmp_path, tight, capsys):
    X, y = counts()
    X[0, 0] = 500
    adata_of(sp.csr_array(X), y).write_h5ad(tmp_path / "x.h5ad")
    assert run(["select", str(tmp_path / "x.h5ad"), "--target", "type"]) == 0
    assert "looks like raw counts" in capsys.readouterr().err


def damage(file, name, change):
    import h5py

    with h5py.File(file, "r+") as stored:
        values = stored[f"X/{name}"][:]
        change(values)
        stored[f"X/{name}"][:] = values


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indices", lambda values: values.__setitem__(-1, 10**6)),
        ("indices", lambda values: values.__setitem__(-1, -1)),
        ("indptr", lambda values: values.__setitem__(3, 10**6)),
        ("indptr", lambda values: values.__setitem__(-1, 10**6)),
        ("indptr", lambda values: values.__setitem__(0, 1)),
    ],
)
def test_a_damaged_sparse_matrix_is_refused(tmp_path, name, change, tight, capsys):
    X, y = counts()
    adata_of(sp.csr_array(X), y).write_h5ad(tmp_path / "x.h5ad")
    damage(tmp_path / "x.h5ad", name, change)
    assert run(["select", str(tmp_path / "x.h5ad"), "--target", "type", "-o", str(tmp_path / "out")]) == 3
    assert not (tmp_path / "out").exists()


class Canary:
    def __reduce__(self):
        return os.mkdir, (os.environ["CANARY"],)


@pytest.mark.parametrize("place", ["X", "obs/type"])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_nothing_in_a_zarr_store_is_unpickled(tmp_path, monkeypatch, place, in_blocks):
    """A store may name the codec pickle for a numeric array, too."""
    monkeypatch.setenv("CANARY", str(tmp_path / "ran"))
    store = tmp_path / "x.zarr"
    for group in ("", "obs", "var"):
        (store / group).mkdir(parents=True, exist_ok=True)
        (store / group / ".zgroup").write_text('{"zarr_format": 2}')
    (store / place).mkdir()
    array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "fill_value": None, "order": "C"}
    (store / place / ".zarray").write_text(json.dumps(array | {"filters": [{"id": "pickle"}], "compressor": None}))
    (store / place / "0").write_bytes(pickle.dumps(Canary()))
    with pytest.raises(DataError, match=f"'{place}' has the codec 'pickle', which is not read: unknown codecs may run code"):
        read_table(store, "type", in_blocks=in_blocks)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["zarr.json", ".zgroup", ".zarray"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"zarr_format": 9}', b"\xff\xfe", b'{"zarr_format": 3}'])
def test_damaged_stores_are_refused(tmp_path, name, content):
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / name).write_bytes(content)
    (tmp_path / "labels.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"x\.zarr: "):
        read_table(tmp_path / "x.zarr", labels=tmp_path / "labels.txt", in_blocks=True)


def test_a_store_that_is_no_adata(tmp_path):
    zarr.open_group(tmp_path / "x.zarr", mode="w")["numbers"] = np.eye(3)
    with pytest.raises(DataError, match=r"x\.zarr: holds 'numbers', but is no AnnData file"):
        read_table(tmp_path / "x.zarr", "type")
    zarr.save(tmp_path / "y.zarr", np.eye(3))
    with pytest.raises(DataError, match=r"y\.zarr: a zarr array has no labels. Give a file with them"):
        read_table(tmp_path / "y.zarr", "type")
    (tmp_path / "labels.txt").write_text("a\nb\nb\n")
    with pytest.raises(DataError, match=r"y\.zarr: layer 'q' is for AnnData; this is a single array. Leave it out"):
        read_table(tmp_path / "y.zarr", labels=tmp_path / "labels.txt", layer="q")


# Files that change, are cut, or have odd names


@pytest.mark.parametrize("in_blocks", [False, True])
def test_chunks_that_are_not_there_are_told(tmp_path, in_blocks, monkeypatch):
    monkeypatch.setattr(limits, "WORK", 10**9)
    X, y = counts()
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(30, N_GENES))
    (tmp_path / "x.zarr" / "c" / "1" / "0").unlink()
    (tmp_path / "labels.txt").write_text("\n".join(y) + "\n")
    table = read_table(tmp_path / "x.zarr", labels=tmp_path / "labels.txt", in_blocks=in_blocks)
    told = "x.zarr: 1 of 3 chunks are not there and count as the fill value, in 30 rows of the matrix all of them"
    assert any(note.startswith(told) for note in table.notes)


@needs_posix
@pytest.mark.parametrize(("name", "other"), [("csr.h5ad", "cells"), ("csr.h5ad", "C.H5"), ("cells.zarr", "folder")])
def test_the_content_of_a_file_counts_and_not_its_name(folder, tmp_path, name, other, tight):
    (tmp_path / other).symlink_to(folder / name)
    table = read_table(tmp_path / other, **reading(folder, name), in_blocks=True)
    assert isinstance(table.X, FileBlocks)
    assert open_large(tmp_path / other).shape == table.X.shape


def test_a_block_that_cannot_be_read_is_told_with_the_file(tmp_path, tight, capsys):
    X, y = counts()
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(30, N_GENES))
    file = tmp_path / "x.zarr" / "c" / "1" / "0"
    file.write_bytes(file.read_bytes()[:20])
    (tmp_path / "labels.txt").write_text("\n".join(y) + "\n")
    assert run(["select", str(tmp_path / "x.zarr"), "--labels", str(tmp_path / "labels.txt")]) == 3
    said = capsys.readouterr().err
    assert re.search(r"error: x\.zarr: rows \d+ to \d+ of the matrix cannot be read \(.*\)\. Copy the file again\.", said)


def overwrite(place, is_same=False):
    """Write into a file, or a chunk of a store, in place, and restore its time, as rsync -t and cp -p do."""
    target = place if place.is_file() else place / "c" / "1" / "0"
    before, content = target.stat(), target.read_bytes()
    if not is_same:
        content = content[:-40] + content[:-41:-1] if place.is_file() else (place / "c" / "0" / "0").read_bytes()
    with open(target, "r+b") as stream:
        stream.write(content)
        stream.truncate()
    while target.stat().st_ctime_ns == before.st_ctime_ns or target.stat().st_mtime_ns != before.st_mtime_ns:
        os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))  # until the clock of the disk has moved


def run_with_change(folder, tmp_path, name, monkeypatch, change):
    """Run select with a change of the file before its second pass, and return the exit code."""
    source, changed = folder / name, tmp_path / name
    shutil.copytree(source, changed) if source.is_dir() else shutil.copy(source, changed)
    n_passes, fit = [], FileBlocks.total

    def total(blocks, kernel, *rest):
        n_passes.append(kernel.__name__)
        if len(n_passes) == 2:
            change(changed)
        return fit(blocks, kernel, *rest)

    monkeypatch.setattr(FileBlocks, "total", total)
    return run(["select", str(changed), *arguments(folder, name)[1:], "-o", str(tmp_path / "out")])


@pytest.mark.parametrize("name", ["rows.npy", "csr.h5ad", "array.zarr"])
def test_a_file_that_changes_while_it_is_read_is_refused(folder, tmp_path, name, monkeypatch, tight, capsys):
    monkeypatch.setattr(FileGuard, "verify", FileGuard.check)  # the passes alone notice it
    assert run_with_change(folder, tmp_path, name, monkeypatch, overwrite) == 3
    assert (
        f"error: {name} was changed while it was read. Wait until it is complete and start again." in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


def test_a_change_that_no_time_shows_is_found_before_results_are_written(folder, tmp_path, monkeypatch, tight, capsys):
    monkeypatch.setattr(FileGuard, "check", lambda guard: None)
    assert run_with_change(folder, tmp_path, "rows.npy", monkeypatch, overwrite) == 3
    assert "rows.npy was changed while it was read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["rows.npy", "array.zarr"])
def test_another_time_mode_or_name_is_no_other_content(folder, tmp_path, name, monkeypatch, tight):
    def touch(place):
        overwrite(place, is_same=True)
        place.chmod(0o755)
        place.rename(place.with_suffix(".moved")) if place.is_file() else None

    assert run_with_change(folder, tmp_path, name, monkeypatch, touch) == 0


def test_without_a_hash_the_time_of_change_needs_a_reason(folder, tmp_path):
    shutil.copy(folder / "rows.npy", tmp_path / "x.npy")
    blocks = open_large(tmp_path / "x.npy")
    before = blocks[:, [1]]
    for change in (lambda file: file.chmod(0o600), lambda file: os.link(file, tmp_path / "link")):
        change(tmp_path / "x.npy")
        np.testing.assert_array_equal(blocks[:, [1]], before)
    overwrite(tmp_path / "x.npy", is_same=True)
    with pytest.raises(ChangedFileError):
        blocks[:, [1]]


def test_a_map_that_shrinks_does_not_kill(folder, tmp_path, tight):
    shutil.copy(folder / "rows.npy", tmp_path / "x.npy")
    blocks = open_large(tmp_path / "x.npy")
    os.truncate(tmp_path / "x.npy", 200)
    with pytest.raises(ValueError, match=r"x\.npy was changed while it was read"):
        blocks[:, [1]]


def test_a_file_that_is_replaced_as_a_whole_is_the_old_one_for_this_run(folder, tmp_path, tight):
    shutil.copy(folder / "rows.npy", tmp_path / "x.npy")
    blocks = open_large(tmp_path / "x.npy")
    before = blocks[:, [1]]
    np.save(tmp_path / "y.npy", np.zeros((N_CELLS, N_GENES), dtype=np.float32))
    os.replace(tmp_path / "y.npy", tmp_path / "x.npy")
    np.testing.assert_array_equal(blocks[:, [1]], before)
