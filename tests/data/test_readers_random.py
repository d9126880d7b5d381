"""Random tables in random dialects of text files: read back as they were written, or refused in one line."""

from __future__ import annotations

import csv
import gzip
import io
import re
from dataclasses import dataclass

import numpy as np
import pytest

from l20fs.data.readers import DataError, UnknownColumnError, read_table

NAMES = [
    *(
        "TP53",
        "HLA-A",
        "Größe",
        "a b",
        "β-actin",
        "NKX2.1",
        "x,y",
        "p;q",
        'the "1"',
        "1-Mar",
        "7SK",
        "A|B",
        "#1",
        "it's",
        "\u00b5g",
    ),
    *("NA", "nan", "1007_s_at", "=SUM(A1)", "-1", "very " * 20, "\u4e2d\u6587", "é", "100"),
]
CODES = ["NA", "", "NaN", "n.d.", "#NV", "N/A"]


@dataclass(frozen=True)
class Written:
    """A table and the bytes that hold it."""

    X: np.ndarray
    y: list[str]
    features: list[str]
    samples: list[str]
    content: bytes
    options: dict[str, object]
    dialect: dict[str, object]


def number_text(value, kind, mark, random):
    """Write a number as a program or a person does, and return also what is written."""
    if kind == "whole":
        text = str(int(value))
    elif kind == "thousands":
        text = f"{int(value * 1000):,}"
    elif kind == "scientific":
        text = f"{value:.4{random.choice(['e', 'E'])}}"
    elif kind == "both":
        text = f"{value * 1000:,.2f}"
    else:
        text = f"{value:.{kind}f}"
    number = float(text.replace(",", ""))
    return text.translate(str.maketrans(",.", ".,")) if mark == "," else text, number


def write(seed):
    """Write a random table in a random dialect."""
    random = np.random.default_rng(seed)
    n_samples, n_features = int(random.integers(6, 14)), int(random.integers(2, 9))
    mark = random.choice([".", ","])
    dialect = {
        "mark": mark,
        "separator": random.choice(["\t", ";", ",", "|"]),
        "encoding": random.choice(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"]),
        "quoting": int(random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
        "titles": int(random.choice([0, 0, 1, 3])),
        "empties": int(random.choice([0, 0, 2])),
        "empty_rows": int(random.choice([0, 2])),
        "ends": random.choice(["\n", "\r\n", "\r"]),
        "is_short": bool(random.random() < 0.2),
        "in_columns": bool(random.random() < 0.3),
        "is_packed": bool(random.random() < 0.2),
    }
    names = [name for name in NAMES if dialect["encoding"] != "cp1252" or fits(name)]
    features = [str(name) for name in random.choice(names, n_features, replace=False)]
    samples = [f"{random.choice(['S', 'Probe ', 'sample-', 'É'])}{i}" for i in range(n_samples)]
    y = [str(label) for label in random.permutation([("u", "v x")[i % 2] for i in range(n_samples)])]
    values = random.standard_normal((n_samples, n_features)) * 10.0 ** random.integers(-2, 4, n_features)
    X, cells = np.empty_like(values), np.empty(values.shape, dtype=object)
    for j in range(n_features):
        kind = random.choice(["whole", "thousands", "scientific", "both", 0, 1, 3, 6])
        kind = int(kind) if kind.isdigit() else kind
        has_gaps = random.random() < 0.3
        for i in range(n_samples):
            cells[i, j], X[i, j] = number_text(values[i, j], kind, mark, random)
            if has_gaps and random.random() < 0.2:
                cells[i, j], X[i, j] = str(random.choice(CODES)), np.nan
    where = int(random.integers(0, n_features + 1))
    rows = [["id", *features], *([name, *row] for name, row in zip(samples, cells.tolist(), strict=True))]
    for row, label in zip(rows, ["type", *y], strict=True):
        row.insert(1 + where, label)
    if dialect["in_columns"]:
        rows = [list(row) for row in zip(*rows, strict=True)]
    if dialect["is_short"]:
        rows[0] = rows[0][1:]
    rows = [row + [""] * dialect["empties"] for row in rows] + [[""] * len(rows[1])] * dialect["empty_rows"]
    stream = io.StringIO()
    csv.writer(stream, delimiter=dialect["separator"], quoting=dialect["quoting"], lineterminator="\n").writerows(rows)
    titles = ["Expression of genes", "", "Measured in March, by hand"][: dialect["titles"]]
    text = "".join(f"{line}\n" for line in titles) + stream.getvalue()
    content = text.replace("\n", dialect["ends"]).encode(dialect["encoding"])
    content = gzip.compress(content, mtime=0) if dialect["is_packed"] else content
    options = {"samples_in": "columns"} if dialect["in_columns"] and random.random() < 0.5 else {}
    if not any(re.search(rf"\d\{mark}\d", cell) for cell in cells.ravel()):  # 1,234 may be a decimal
        options["decimal"] = mark
    return Written(X, y, features, samples, content, options, dialect)


def fits(name):
    try:
        name.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def check(seed, folder):
    """Read a random table; return the refusal, None if it is read back."""
    written = write(seed)
    file = folder / f"{seed}.csv"
    file.write_bytes(written.content)
    try:
        found = read_table(file, "type", **written.options)
    except (DataError, UnknownColumnError) as error:
        return str(error)
    finally:
        file.unlink()
    features, samples = (~np.isnan(written.X).all(axis=axis) for axis in (0, 1))
    assert found.feature_names == np.array(written.features)[features].tolist()
    assert found.sample_names == np.array(written.samples)[samples].tolist()
    assert found.y.tolist() == np.array(written.y)[samples].tolist()
    np.testing.assert_allclose(found.X_before, written.X[samples][:, features], rtol=1e-12)
    return None


@pytest.mark.parametrize("block", range(4))
def test_random_tables_are_read_back_or_refused(block, tmp_path):
    outcomes = [check(100 * block + seed, tmp_path) for seed in range(50)]
    assert not any("\n" in (outcome or "") for outcome in outcomes)
    assert sum(outcome is None for outcome in outcomes) > 40, outcomes
