"""One small table of samples in every kind of file that is read."""

from __future__ import annotations

import gzip
import io
import warnings

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

GENES = ["TP53", "NA", "1-Mar", "nan", "44256"]
SAMPLES = [f"s{i}" for i in range(8)]
LABELS = ["u", "v", "None", "v", "u", "v", "None", "u"]
DONORS = ["d1", "d1", "d2", "d2", "d3", "d3", "d1", "d2"]
X = np.round(np.random.default_rng(0).standard_normal((8, 5)), 3)
X[X < -0.7] = 0.0  # some zeros for what is sparse

FRAME = pd.DataFrame(X, index=SAMPLES, columns=GENES)
NUMBERED = [f"feature{j + 1}" for j in range(5)]
LABEL_FILE = "sample,type,donor\n" + "".join(
    f"{name},{label},{donor}\n" for name, label, donor in list(zip(SAMPLES, LABELS, DONORS, strict=True))[::-1]
)


def with_labels():
    return FRAME.assign(type=LABELS, donor=DONORS)


def in_columns(with_rows=True):
    rows = FRAME.T.astype(object)
    return pd.concat([rows, pd.DataFrame([LABELS, DONORS], index=["type", "donor"], columns=SAMPLES)]) if with_rows else rows


def written(write, *arguments, **options):
    """Return the bytes that a function writes to a stream."""
    stream = io.BytesIO()
    write(stream, *arguments, **options)
    return stream.getvalue()


def csv(frame, **options):
    return frame.to_csv(**options).encode()


def gct(version):
    head = "#1.2\n5\t8\nName\tDescription\t" if version == 2 else "#1.3\n5\t8\t2\t2\nid\tsymbol\tplace\t"
    about = "what\t" if version == 2 else "what\t1\t"
    lines = [] if version == 2 else [name + "\tna\tna\t" + "\t".join(v) for name, v in (("type", LABELS), ("donor", DONORS))]
    lines += [f"{gene}\t{about}" + "\t".join(map(repr, X[:, j].tolist())) for j, gene in enumerate(GENES)]
    return (head + "\t".join(SAMPLES) + "\n" + "\n".join(lines) + "\n").encode()


def arff():
    head = "% made here\n\n@RELATION small\n" + "".join(f"@attribute '{gene}' numeric\n" for gene in GENES)
    rows = "".join(",".join(map(repr, row)) + f",'{label}'\n" for row, label in zip(X.tolist(), LABELS, strict=True))
    return (head + "@attribute class {u, 'v', None}\n@DATA\n% samples\n" + rows).encode()


def matrix_market():
    entries = sp.coo_array(X.T)
    rows = [
        f"{i + 1} {j + 1} {v!r}" for i, j, v in zip(*map(np.ndarray.tolist, (*entries.coords, entries.data)), strict=True)
    ]
    head = ["%%MatrixMarket matrix coordinate real general", "% made here", f"5 8 {entries.nnz}"]
    return "\n".join([*head, *rows, ""]).encode()


def h5ad(folder, matrix=None, **fields):
    """Write an AnnData file and return its bytes."""
    obs = pd.DataFrame({"type": pd.Categorical(LABELS), "donor": DONORS, "age": np.arange(8.0)}, index=SAMPLES)
    adata = anndata.AnnData(sp.csr_array(X) if matrix is None else matrix, obs=obs, var=pd.DataFrame(index=GENES))
    for name, value in fields.items():
        adata.layers[name] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_h5ad(folder / "written.h5ad")
    return (folder / "written.h5ad").read_bytes()


def svmlight():
    return written(lambda stream: dump_svmlight_file(X, np.unique(LABELS, return_inverse=True)[1], stream, zero_based=False))


def excel(frame):
    stream = io.BytesIO()
    frame.to_excel(stream, sheet_name="counts")
    return stream.getvalue()


def contents(folder):
    """Return the bytes of a whole file of every kind, by name, and how it is read.

    What is left out of the options has its labels by custom; the names of samples and features that the format has are those
    above.
    """
    mat = {"X": X, "Y": np.unique(LABELS, return_inverse=True)[1] + 1}
    npz = {"X": X, "y": LABELS, "feature_names": GENES, "sample_names": SAMPLES, "donor": DONORS}
    in_table, in_row = {"target": "type", "groups": "donor"}, {"target": "type", "groups": "donor", "samples_in": "columns"}
    by_file = {"target": "type", "groups": "donor", "labels": "labels.csv"}
    return {
        "a.csv": (csv(with_labels()), in_table),
        "a.tsv.gz": (gzip.compress(csv(with_labels(), sep="\t")), in_table),
        "quoted.csv": (csv(with_labels(), quoting=2), in_table),
        "plain.csv": (csv(FRAME), by_file),
        "turned.csv": (csv(in_columns()), in_row),
        "turned.tsv": (csv(in_columns(False), sep="\t"), {**by_file, "samples_in": "columns"}),
        "two.gct": (gct(2), by_file),
        "three.gct.gz": (gzip.compress(gct(3)), in_table),
        "a.arff": (arff(), {}),
        "a.svm": (svmlight(), {}),
        "a.npz": (written(np.savez_compressed, **npz), {"groups": "donor"}),
        "a.npy": (written(np.save, X), {"labels": "plain.txt"}),
        "sparse.npz": (written(sp.save_npz, sp.csc_array(X)), {"labels": "plain.txt"}),
        "a.mat": (written(savemat, mat), {}),
        "packed.mat": (written(savemat, mat, do_compression=True), {}),
        "a.parquet": (with_labels().to_parquet(), in_table),
        "turned.parquet": (FRAME.T.to_parquet(), {**by_file, "samples_in": "columns"}),
        "a.xlsx": (excel(with_labels()), in_table),
        "turned.xlsx": (excel(in_columns()), in_row),
        "a.h5ad": (h5ad(folder), in_table),
        "dense.h5ad": (h5ad(folder, X.astype(np.float32)), in_table),
        "matrix.mtx": (matrix_market(), by_file),
    }


def lay_out(folder):
    """Write all files, and those that belong to some, into a folder; return what is to be read with its options."""
    all_contents = contents(folder)
    for name, (content, _) in all_contents.items():
        (folder / name).write_bytes(content)
    (folder / "labels.csv").write_text(LABEL_FILE)
    (folder / "plain.txt").write_text("\n".join(LABELS) + "\n")
    (folder / "features.tsv").write_text("".join(f"ENSG{j}\t{gene}\tGene Expression\n" for j, gene in enumerate(GENES)))
    (folder / "barcodes.tsv.gz").write_bytes(gzip.compress("\n".join(SAMPLES).encode()))
    return {
        name: {k: folder / v if k == "labels" else v for k, v in options.items()}
        for name, (_, options) in all_contents.items()
    }
