"""Tables, labels and workbooks that would take more memory than --max-memory, and honest ones that take less."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import openpyxl

from attacks import HELD, attack

MIB = 2**20
ROWS = "u,1.5\nv,2.5\n"


def text(folder: Path, content: str, name: str = "table.csv") -> list[str]:
    (folder / name).write_text(content)
    return ["select", str(folder / name), "--target", "type"]


def packed(folder: Path, start: bytes, repeated: bytes, number: int) -> list[str]:
    """Write a gzip file of a text and another one, many times."""
    file = folder / "table.csv.gz"
    part = gzip.compress(repeated * 100_000, 1)
    file.write_bytes(gzip.compress(start) + part * (number // 100_000))
    return ["select", str(file), "--target", "type"]


@attack(r"needs about .* of memory", cap=64 * MIB)
def two_columns_of_two_million_lines(folder: Path) -> list[str]:
    return text(folder, "type,a\n" + "u,1\nv,2\n" * 1_000_000)


@attack(r"needs about .* of memory", cap=64 * MIB)
def lines_without_end_in_gzip(folder: Path) -> list[str]:
    return packed(folder, b"type,a\n", b"u,1\n", 200_000_000)


@attack(r"needs about .* of memory", cap=64 * MIB)
def a_line_without_end_in_gzip(folder: Path) -> list[str]:
    return packed(folder, b"type,", b"a" * 10, 40_000_000)


@attack(r"needs about .* of memory", cap=64 * MIB)
def fields_without_end_in_gzip(folder: Path) -> list[str]:
    return packed(folder, b"type", b",a", 5_000_000)


@attack(HELD, cap=64 * MIB)
def blanks_between_millions_of_fields(folder: Path) -> list[str]:
    return text(folder, "type " + "a " * 4_000_000)


@attack(r"needs about .* of memory", cap=64 * MIB)
def one_wide_character_makes_all_wide(folder: Path) -> list[str]:
    return text(folder, "type,a\n" + "u,1.50000000000000000000000000000000\n" * 300_000 + "\N{GRINNING FACE},2\n")


@attack(r"needs about .* of memory", cap=64 * MIB)
def quoted_line_breaks(folder: Path) -> list[str]:
    return text(folder, "type,a\n" + '"u","1\n"\n' * 1_000_000)


@attack(r"", code=0, cap=165 * MIB)
def a_wide_table_below_the_cap(folder: Path) -> list[str]:
    lines = [",".join(f"{(i * j) % 97 / 7:.4f}" for j in range(10_000)) for i in range(1, 8)]
    rows = "".join(f"{'uv'[i % 2]},{lines[i % 7]}\n" for i in range(200))
    return text(folder, "type," + ",".join(f"g{j}" for j in range(10_000)) + "\n" + rows)


@attack(r"", code=0, cap=90 * MIB)
def a_tall_table_below_the_cap(folder: Path) -> list[str]:
    return text(folder, "type,a,b\n" + "u,1.5,1\nv,2.5,0\nu,1.0,0\nv,2.0,0\n" * 50_000)


@attack(r"labels.csv: needs about .* of memory", cap=64 * MIB)
def labels_without_end(folder: Path) -> list[str]:
    (folder / "labels.csv").write_text("name,type\n" + "a,u\n" * 1_000_000)
    return ["select", text(folder, "name,a\n" + ROWS)[1], "--labels", str(folder / "labels.csv")]


@attack(r"labels.csv.gz: needs about .* of memory", cap=64 * MIB)
def labels_without_end_in_gzip(folder: Path) -> list[str]:
    packed(folder, b"name,type\n", b"a,u\n", 100_000_000)
    (folder / "table.csv.gz").rename(folder / "labels.csv.gz")
    return ["select", text(folder, "name,a\n" + ROWS)[1], "--labels", str(folder / "labels.csv.gz")]


@attack(r"'type' has 100000 characters in line 2. Labels and groups have at most 1000", cap=256 * MIB)
def one_label_of_a_hundred_thousand_letters(folder: Path) -> list[str]:
    return text(folder, "type,a\n" + "u" * 100_000 + ",1\n" + ROWS * 25_000)


@attack(r"", code=0, cap=128 * MIB)
def one_label_of_a_thousand_letters(folder: Path) -> list[str]:
    return text(folder, "type,a\n" + "u" * 1_000 + ",1\n" + ROWS * 10_000)


@attack(r"larger than 16777216 bytes", code=2)
def a_list_of_names_without_end(folder: Path) -> list[str]:
    (folder / "names.txt").write_bytes(b"ab\n" * 6_000_000)
    return [*text(folder, "type,a\n" + ROWS * 5), "--include", f"@{folder / 'names.txt'}"]


@attack(r"states 9999999 features, but has 40 values", cap=64 * MIB)
def a_feature_number_of_ten_million(folder: Path) -> list[str]:
    (folder / "a.svm").write_text("".join(f"{i % 2} {i % 9 + 1}:1 9999999:3\n" for i in range(20)))
    return ["select", str(folder / "a.svm")]


def matrix_market(folder: Path, sizes: str) -> list[str]:
    (folder / "matrix.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n{sizes}\n1 1 1\n")
    (folder / "features.tsv").write_text("a\nb\n")
    (folder / "labels.txt").write_text("u\nv\n")
    return ["select", str(folder), "--labels", str(folder / "labels.txt")]


@attack(HELD, cap=64 * MIB)
def a_matrix_of_a_trillion_rows(folder: Path) -> list[str]:
    return matrix_market(folder, f"{10**12} {10**12} 1")


@attack(HELD, cap=64 * MIB)
def a_matrix_of_a_billion_columns(folder: Path) -> list[str]:
    return matrix_market(folder, "5 999999999 1")


@attack(HELD, cap=64 * MIB)
def names_of_genes_without_end(folder: Path) -> list[str]:
    packed(folder, b"", b"\t\n", 50_000_000)
    command = matrix_market(folder, "5 2 1")
    (folder / "features.tsv").unlink()
    (folder / "table.csv.gz").rename(folder / "features.tsv.gz")
    return command


SHEET, LINKS, TEXTS = "xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml"
NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def sheet(folder: Path, cells: str, *, place: str = SHEET, texts: str = "", method: int = zipfile.ZIP_DEFLATED) -> list[str]:
    """Write a workbook of a small table and more cells."""
    rows = "".join(
        f'<row r="{i}"><c r="A{i}" t="inlineStr"><is><t>{"type" if i == 1 else "uv"[i % 2]}</t></is></c>'
        + (f'<c r="B{i}"><v>{i}.5</v></c></row>' if i > 1 else '<c r="B1" t="inlineStr"><is><t>a</t></is></c></row>')
        for i in range(1, 12)
    )
    stream = io.BytesIO()
    openpyxl.Workbook().save(stream)
    with zipfile.ZipFile(stream) as packed, zipfile.ZipFile(folder / "a.xlsx", "w", method) as book:
        entries = {name: packed.read(name).decode() for name in packed.namelist()}
        del entries[SHEET]
        entries[place] = f"<worksheet {NAMESPACE}><sheetData>{rows}{cells}</sheetData></worksheet>"
        if texts:
            kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
            link = f'<Relationship Id="rId99" Type="{kind}" Target="/{TEXTS}"/></Relationships>'
            entries[TEXTS] = f"<sst {NAMESPACE}>{texts}</sst>"
            entries[LINKS] = entries[LINKS].replace("</Relationships>", link)
        entries[LINKS] = entries[LINKS].replace(SHEET, place)
        for name, content in entries.items():
            book.writestr(name, content)
    return ["select", str(folder / "a.xlsx"), "--target", "type"]


LAST = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@attack(HELD, cap=64 * MIB)
def a_sheet_with_another_name(folder: Path) -> list[str]:
    return sheet(folder, LAST, place="xl/elsewhere/a.xml")


@attack(HELD, cap=64 * MIB)
def a_bracket_in_an_attribute(folder: Path) -> list[str]:
    return sheet(folder, LAST.replace("<c ", '<c x=">" '))


@attack(HELD, cap=64 * MIB)
def two_references_of_a_cell(folder: Path) -> list[str]:
    return sheet(folder, '<row r="12"><c r="A12" r="XFD1048576"><v>1</v></c></row>')


@attack(HELD, cap=64 * MIB)
def a_row_number_that_later_rows_count_from(folder: Path) -> list[str]:
    cell = "<c><v>1</v></c>"
    return sheet(folder, f'<row r="1048570"/><row><c r="A1"/></row><row>{cell}</row><row><c r="XFD9"><v>1</v></c></row>')


@attack(HELD, cap=64 * MIB)
def cells_without_references(folder: Path) -> list[str]:
    return sheet(folder, f"<row>{'<c/>' * 15_999}<c><v>1</v></c></row>" + "<row/>" * 59_999 + "<row><c><v>1</v></c></row>")


@attack(HELD, cap=64 * MIB)
def a_long_text_in_many_cells(folder: Path) -> list[str]:
    cells = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(12, 10_012))
    return sheet(folder, cells, texts=f"<si><t>{'a' * 30_000}</t></si>")


@attack(HELD, cap=64 * MIB)
def a_workbook_compressed_by_bzip2(folder: Path) -> list[str]:
    return sheet(folder, " " * 10_000_000, method=zipfile.ZIP_BZIP2)


@attack(r"", code=0, cap=64 * MIB)
def a_binary_workbook(folder: Path) -> list[str]:
    command = sheet(folder, "")
    with zipfile.ZipFile(folder / "a.xlsx", "a") as archive:
        archive.writestr("xl/Workbook.bin", "")
    return command
