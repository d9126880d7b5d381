"""Files as laboratories have them, everyday and hostile ones, and what a newcomer's first command makes of each.

``python tests/lab_files.py FOLDER`` writes them all and lists the commands.
"""

from __future__ import annotations

import gzip
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import savemat

from l20fs.tables.settings import KEYS

#: The table that all files hold: 36 samples of three classes, 12 genes, of which the first three tell the classes apart.
LABELS = ["EWS", "NB", "RMS"] * 12
GENES = ["TP53", "MYC", "CD99", *(f"GENE{j}" for j in range(4, 13))]
SAMPLES = [f"Probe_{i}" for i in range(1, 37)]
VALUES = np.round(5.0 + np.random.default_rng(0).standard_normal((36, 12)), 3)
for place, label in enumerate(("EWS", "NB", "RMS")):
    VALUES[np.array(LABELS) == label, place] += 3.0
VALUES = np.round(VALUES, 3)
FRAME = pd.DataFrame(VALUES, index=pd.Index(SAMPLES, name="sample"), columns=GENES)
WITH_TYPE = FRAME.assign(type=LABELS)
SHEET = pd.DataFrame({"sample": SAMPLES, "type": LABELS})


@dataclass(frozen=True)
class LabFile:
    """A file, the options of the first command, and its outcome.

    Attributes
    ----------
    name : str
        Name of the file that the command reads.
    write : callable
        Writes it, and what belongs to it, into a folder.
    options : str
        Options of ``l20fs select``; ``{file}`` stands for the path of the file.
    says : tuple of str
        Parts of what the terminal says.
    values : callable or None
        Returns the values that must be read; None: those of the table.
    exit_code : int
    """

    name: str
    write: Callable[[Path], object]
    options: str = "--target type"
    says: tuple[str, ...] = ()
    values: Callable[[], np.ndarray] | None = None
    exit_code: int = 0

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments of the command line for the file in a folder; options of old are settings."""
        file, words = folder / self.name, self.options.format(file=folder / self.name).split()
        found = ["select", str(file)]
        for word in words:
            key = word.removeprefix("--").replace("-", "_")
            if found[-1].endswith("="):
                found[-1] += word
            elif f"input.{key}" in KEYS:
                found += ["--config", f"input.{key}="]
            else:
                found.append(word)
        return found


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    """Return a function that writes a text to the file it is given."""
    return lambda file: file.write_bytes(content.encode(encoding))


def data(content: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(content)


def csv(frame: pd.DataFrame = WITH_TYPE, **options) -> str:
    return frame.to_csv(**options)


def comma(frame: pd.DataFrame = WITH_TYPE, **options) -> str:
    """Return a table with decimal commas; other cells than numbers stay as they are."""
    written = frame.map(lambda cell: str(cell).replace(".", ",") if isinstance(cell, float) else cell)
    return csv(written, **{"sep": ";", **options})


def with_cells(cells: dict[tuple[int, str], object]) -> pd.DataFrame:
    """Return the table with other cells, by sample and column."""
    frame = WITH_TYPE.astype(object)
    for (sample, column), value in cells.items():
        frame.loc[SAMPLES[sample], column] = value
    return frame


def without(cells: list[tuple[int, str]], value: float = np.nan) -> Callable[[], np.ndarray]:
    """Return the values with some cells missing, or of another value."""

    def values() -> np.ndarray:
        frame = FRAME.copy()
        for sample, column in cells:
            frame.loc[SAMPLES[sample], column] = value
        return frame.to_numpy()

    return values


def workbook(sheets: dict[str, pd.DataFrame], **options) -> Callable[[Path], object]:
    """Return a function that writes a workbook."""

    def write(file: Path) -> None:
        with pd.ExcelWriter(file, engine="openpyxl") as book:
            for name, frame in sheets.items():
                frame.to_excel(book, sheet_name=name, **options)

    return write


def beside(main: Callable[[Path], object], sheet: Callable[[Path], object], ending: str = "csv") -> Callable[[Path], object]:
    """Return a function that writes a table and, beside it, a sheet of the samples."""

    def write(file: Path) -> None:
        main(file)
        sheet(file.with_name(f"{file.name}.sheet.{ending}"))

    return write


def in_columns() -> pd.DataFrame:
    return FRAME.T.rename_axis("gene")


def series_matrix() -> str:
    """Return a table as the Gene Expression Omnibus has it."""
    head = '!Series_title\t"Small round blue cell tumours"\n!Series_geo_accession\t"GSE0"\n\n'
    head += "!Sample_title\t" + "\t".join(f'"{name}"' for name in SAMPLES) + "\n!series_matrix_table_begin\n"
    body = in_columns().rename_axis("ID_REF").to_csv(sep="\t", quotechar='"')
    return head + body + "!series_matrix_table_end\n"


def write_table_of_r() -> str:
    """Return a table as R's write.table has it: blanks, names in quotes, a header without the name of the row names."""
    lines = [" ".join(f'"{name}"' for name in [*GENES, "type"])]
    for name, row, label in zip(SAMPLES, VALUES.tolist(), LABELS, strict=True):
        lines.append(" ".join([f'"{name}"', *map(str, row), f'"{label}"']))
    return "\n".join(lines) + "\n"


def mat_7(file: Path) -> None:
    savemat(file, {"X": VALUES, "Y": np.array([[sorted(set(LABELS)).index(label)] for label in LABELS], dtype=float)})


def h5ad_with_gaps(file: Path) -> None:
    anndata = __import__("anndata")
    found = without([(3, "MYC"), (4, "TP53")])()
    anndata.AnnData(
        found, obs=pd.DataFrame({"type": pd.Categorical(LABELS)}, index=SAMPLES), var=pd.DataFrame(index=GENES)
    ).write_h5ad(file)


def parquet(file: Path) -> None:
    WITH_TYPE.to_parquet(file)


def gzipped(content: str) -> bytes:
    return gzip.compress(content.encode(), mtime=0)


#: A workbook with the samples in its second sheet.
SHEETS = workbook({"notes": pd.DataFrame({"a": ["b"]}), "samples": SHEET}, index=False)

#: Files that are read at the first try.
EVERYDAY = [
    LabFile("plain.csv", text(csv())),
    LabFile("tabs.tsv", text(csv(sep="\t"))),
    LabFile("windows.csv", text("\ufeff" + csv().replace("\n", "\r\n"))),
    LabFile("macintosh.csv", text(csv().replace("\n", "\r"))),
    LabFile("packed.csv.gz", data(gzipped(csv()))),
    LabFile("points.csv", text(csv(sep=";"))),
    LabFile("decimal-comma.csv", text(comma()), says=("decimal comma", "input.decimal=,")),
    LabFile("decimal-comma.txt", text(comma(sep="\t")), says=("input.decimal=,",)),
    LabFile("decimal-comma-said.csv", text(comma()), "--target type --decimal ,"),
    LabFile("quoted-decimal-comma.csv", text(comma(sep=",")), "--target type --decimal ,"),
    LabFile(
        "cp1252.csv",
        text(csv(WITH_TYPE.replace({"NB": "Müller"})), "cp1252"),
        says=("cp1252", "input.encoding"),
    ),
    LabFile("unicode-text.txt", text(csv(sep="\t"), "utf-16")),
    LabFile("unicode-text-comma.txt", text(comma(sep="\t"), "utf-16"), says=("input.decimal=,",)),
    LabFile(
        "empty-cells.csv",
        text(csv(with_cells({(3, "MYC"): "", (4, "TP53"): ""}))),
        says=("2 values", "'TP53'", "median", "input.missing=median"),
        values=without([(3, "MYC"), (4, "TP53")]),
    ),
    LabFile(
        "missing-knn.csv",
        text(csv(with_cells({(3, "MYC"): "NA", (4, "TP53"): "NaN"}))),
        "--target type --missing knn",
        values=without([(3, "MYC"), (4, "TP53")]),
    ),
    LabFile(
        "missing-drop.csv",
        text(csv(with_cells({(3, "GENE4"): "NA"}))),
        "--target type --missing drop",
        says=("'GENE4'",),
        values=lambda: FRAME.drop(columns="GENE4").to_numpy(),
    ),
    LabFile(
        "text-columns.csv",
        text(csv(WITH_TYPE.assign(sex=["f", "m"] * 18, site=["Bonn", "Köln", "Ulm"] * 12))),
        says=("'sex', 'site'", "--ignore"),
    ),
    LabFile(
        "text-columns-ignored.csv",
        text(csv(WITH_TYPE.assign(sex=["f", "m"] * 18, site=["Bonn", "Köln", "Ulm"] * 12, plate=7.5))),
        "--target type --ignore sex,s*e,plate",
    ),
    LabFile(
        "patterns.csv",
        text(csv(WITH_TYPE.assign(sex=["f", "m"] * 18, plate=7.5))),
        "--target type --ignore pl*",
    ),
    LabFile(
        "descriptions.tsv",
        beside(
            text(
                in_columns()
                .reset_index()
                .assign(description=[f"about {gene}" for gene in GENES])[["gene", "description", *SAMPLES]]
                .to_csv(sep="\t", index=False)
            ),
            text(SHEET.to_csv(index=False)),
        ),
        "--samples-in columns --labels {file}.sheet.csv",
        says=("description", "left out"),
    ),
    LabFile(
        "turned.csv",
        text(pd.concat([pd.DataFrame([LABELS], index=["type"], columns=SAMPLES), in_columns().astype(object)]).to_csv()),
        says=("samples_in=columns",),
    ),
    LabFile(
        "turned-sheet.csv",
        beside(text(in_columns().to_csv()), text(SHEET.to_csv(index=False))),
        "--labels {file}.sheet.csv",
        says=("samples_in=columns",),
    ),
    LabFile(
        "repeated-genes.csv",
        text(csv().replace("GENE4", "TP53", 1)),
        says=("'TP53'", "input.duplicates=number"),
    ),
    LabFile(
        "repeated-genes-mean.csv",
        text(csv().replace("GENE4", "TP53", 1)),
        "--target type --duplicates mean",
        values=lambda: FRAME.assign(TP53=(FRAME["TP53"] + FRAME["GENE4"]) / 2).drop(columns="GENE4").to_numpy(),
    ),
    LabFile(
        "repeated-genes-first.csv",
        text(csv().replace("GENE4", "TP53", 1)),
        "--target type --duplicates first",
        values=lambda: FRAME.drop(columns="GENE4").to_numpy(),
    ),
    LabFile("empty-columns.csv", text("".join(line + ",,\n" for line in csv().splitlines()))),
    LabFile("empty-rows.csv", text(csv() + "," * 13 + "\n" + "," * 13 + "\n\n")),
    LabFile(
        "titles.csv",
        text("Expression of 12 genes\n\nMeasured in March\n" + csv()),
        says=("3 lines above",),
    ),
    LabFile("titles-said.csv", text("Expression of 12 genes\n\nMeasured in March\n" + csv()), "--target type"),
    LabFile("comments.tsv", text("# made by a machine\n# on a day\n" + csv(sep="\t")), says=("2 lines above",)),
    LabFile(
        "GSE0_series_matrix.txt",
        beside(text(series_matrix()), text(SHEET.to_csv(index=False))),
        "--samples-in columns --labels {file}.sheet.csv",
        says=("lines above the header",),
    ),
    LabFile("write-table.txt", text(write_table_of_r())),
    LabFile(
        "labels-in-workbook.csv",
        beside(text(csv(FRAME)), SHEETS, "xlsx"),
        "--labels {file}.sheet.xlsx --labels-sheet samples --target type",
    ),
    LabFile(
        "labels-in-some-sheet.csv",
        beside(text(csv(FRAME)), SHEETS, "xlsx"),
        "--labels {file}.sheet.xlsx --target type",
        says=("'notes'", "'samples'"),
    ),
    LabFile(
        "other-samples.csv",
        beside(
            text(csv(FRAME)),
            text(pd.concat([SHEET[3:], pd.DataFrame({"sample": ["Probe_99"], "type": ["NB"]})]).to_csv(index=False)),
        ),
        "--labels {file}.sheet.csv",
        says=("'Probe_1'", "'Probe_99'", "input.join=inner"),
        values=lambda: VALUES[3:],
    ),
    LabFile(
        "near-names.csv",
        beside(text(csv(FRAME)), text(SHEET.replace({"sample": {"_": " "}}, regex=True).to_csv(index=False))),
        "--labels {file}.sheet.csv",
        says=("'Probe_1'", "'Probe 1'", "input.join=near"),
    ),
    LabFile(
        "below-limit.csv",
        text(csv(with_cells({(3, "MYC"): "<0.01", (4, "TP53"): "< 0.01"}))),
        says=("<0.01", "'MYC'", "line"),
        values=without([(3, "MYC"), (4, "TP53")], 0.01),
    ),
    LabFile(
        "not-detected.csv",
        text(csv(with_cells({(3, "MYC"): "n.d.", (4, "TP53"): "#NV"}))),
        says=("'TP53'", "line", "missing"),
        values=without([(3, "MYC"), (4, "TP53")]),
    ),
    LabFile(
        "odd-cell.csv",
        text(csv(with_cells({(3, "MYC"): "haemolytic"}))),
        says=("'haemolytic'", "'MYC'", "line 5", "input.na"),
        values=without([(3, "MYC")]),
    ),
    LabFile(
        "odd-cell-said.csv",
        text(csv(with_cells({(3, "MYC"): "haemolytic"}))),
        "--target type --na haemolytic --missing median",
        values=without([(3, "MYC")]),
    ),
    LabFile("one-sheet.xlsx", workbook({"data": WITH_TYPE})),
    LabFile(
        "several-sheets.xlsx",
        workbook({"read me": pd.DataFrame({"a": ["b"]}), "values": WITH_TYPE, "plots": pd.DataFrame({"a": [1]})}),
        says=("'read me'", "'values'", "'plots'", "input.sheet='values'"),
    ),
    LabFile("titles.xlsx", workbook({"data": WITH_TYPE}, startrow=3)),
    LabFile("v7.mat", mat_7, ""),
    LabFile("stored.parquet", parquet),
    LabFile(
        "gaps.h5ad",
        h5ad_with_gaps,
        says=("input.missing=median",),
        values=without([(3, "MYC"), (4, "TP53")]),
    ),
    LabFile("not-excel.xlsx", text(csv()), says=("is named like Excel",)),
    LabFile("dates.csv", text(csv().replace("GENE4", "1-Mar", 1).replace("GENE5", "2-Sep", 1)), says=("look like dates",)),
    LabFile("names.csv", text(csv().replace("GENE4", "NA", 1).replace("GENE5", "nan", 1))),
    LabFile(
        "labels-with-blanks.csv",
        text(csv(with_cells({(1, "type"): "NB ", (4, "type"): "nb", (7, "type"): "nb", (10, "type"): "NB "}))),
        says=("'NB'", "'NB '", "'nb'", "blanks"),
    ),
    LabFile(
        "metadata.csv",
        text(csv(WITH_TYPE.assign(age=np.arange(36) % 30 + 30, Batch=[1, 2, 3] * 12))),
        says=("metadata", "'age', 'Batch'", "--ignore age,Batch"),
        values=lambda: np.column_stack([VALUES, np.arange(36) % 30 + 30, [1, 2, 3] * 12]),
    ),
    LabFile(
        "counted-samples.csv",
        text(csv(WITH_TYPE.reset_index(drop=True).rename_axis("no"))),
        says=("'no'",),
    ),
    LabFile(
        "thousands.csv",
        text(comma(with_cells({(3, "MYC"): "1.234,5"}))),
        says=("input.decimal=,",),
        values=without([(3, "MYC")], 1234.5),
    ),
]

#: Files that cannot be read, or only after a decision by the user.
REFUSED = [
    LabFile("empty.csv", text(""), exit_code=3),
    LabFile("header.csv", text(csv().splitlines()[0] + "\n"), exit_code=3, says=("no samples",)),
    LabFile(
        "ragged.csv", text(csv().replace("\nProbe_9,", "\nProbe_9,1,2,", 1)), exit_code=3, says=("line 10", "14 fields")
    ),
    LabFile("binary.csv", data(bytes(range(256)) * 20), exit_code=3),
    LabFile(
        "mixed-marks.csv",
        text(comma(with_cells({(8, "TP53"): "1.25"}))),
        exit_code=3,
    ),
    LabFile("pickled.pkl", data(pickle.dumps(VALUES)), exit_code=3, says=("run code",)),
    LabFile("pickled.csv", data(pickle.dumps(VALUES)), exit_code=3, says=("pickle",)),
    LabFile("infinite.csv", text(csv(with_cells({(3, "MYC"): "inf"}))), exit_code=3, says=("infinite", "'MYC'")),
    LabFile("one-class.csv", text(csv(FRAME.assign(type="NB"))), exit_code=3, says=("'NB'",)),
    LabFile("no-target.csv", text(csv()), "", exit_code=2, says=("--target", "'type'")),
    LabFile("wrong-target.csv", text(csv()), "--target tpye", exit_code=2, says=("Did you mean 'type'",)),
    LabFile(
        "strangers.csv",
        beside(text(csv(FRAME)), text(SHEET.assign(sample=[f"T{i}" for i in range(36)]).to_csv(index=False))),
        "--labels {file}.sheet.csv",
        exit_code=3,
        says=("'Probe_1'", "'T0'"),
    ),
    LabFile("truncated.csv.gz", data(gzipped(csv())[:200]), exit_code=3, says=("gzip",)),
    LabFile("truncated.mat", lambda file: (mat_7(file), file.write_bytes(file.read_bytes()[:300])), "", exit_code=3),
    LabFile("v7.3.mat", data(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"), "", exit_code=3, says=("-v7",)),
    LabFile("only-text.csv", text("type,a,b\nu,x,y\nv,y,z\n" * 6), exit_code=3),
    LabFile("page.csv", text("<!DOCTYPE html><html><body>Not found</body></html>\n"), exit_code=3),
    LabFile("unknown-sheet.xlsx", workbook({"data": WITH_TYPE}), "--target type --sheet dta", exit_code=2, says=("'data'",)),
]

ALL = EVERYDAY + REFUSED


def main(folder: Path) -> None:
    """Write all files, and list the command for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in ALL:
        file.write(folder / file.name)
        print("l20fs", *file.arguments(folder), "-o results")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
