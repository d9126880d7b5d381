"""Texts of half a megabyte and of odd shapes: the time of every parser must grow linearly with the size.

``python -m fuzz.shapes`` reads them all; the system ends it after a minute of work, a hundred times what it takes.
"""

from __future__ import annotations

import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from fuzz.corpus import REFUSALS
from l20fs.tables import read_table

N = 4 * 10**5
MOST_WORK = 60
ROWS = "u,1.5\nv,2.5\n" * 4

#: Tables as text.
TABLES = {
    "many quotes": "type,a\n" + '"' * N + "\n" + ROWS,
    "open quotes": "type,a\n" + 'u,"\n' * (N // 8) + ROWS,
    "many separators": "," * N,
    "lines of separators": ("," * 1000 + "\n") * (N // 1000),
    "blank lines": "type,a\n" + "\n" * N + ROWS,
    "blank lines first": "\n" * N + "type,a\n" + ROWS,
    "comments": "#x\n" * (N // 3) + "type,a\n" + ROWS,
    "columns of one name": "type" + ",a" * (N // 40) + "\n" + ("u" + ",1" * (N // 40) + "\nv" + ",2" * (N // 40) + "\n") * 2,
    "a cell of blanks": "type,a\nu,1" + " " * N + "x\n" + ROWS,
    "a title of blanks": "1" + " " * N + "x\ntype,a\n" + ROWS,
    "digits": "type,a\nu," + "1" * (N // 10) + "\n" + ROWS,
    "thousands": "type;a\nu;1" + ",000" * (N // 40) + "x\n" + ROWS.replace(",", ";"),
    "separated by blanks": "type a\n" + ("u" + " " * 1000 + "1\nv" + " " * 1000 + "2\n") * (N // 2000),
    "an open quote between blanks": "type a b\n" + "u 1 2\n" * 5 + 'u "' + "a " * (N // 2) + "\n",
    "quotes between blanks": "type a\n" + "u 1\n" * 5 + "u " + '" ' * (N // 2) + "\n",
    "an attribute of blanks": "@relation x\n@attribute" + " " * N + "\n@data\n",
    "an attribute of quotes": "@relation x\n@attribute '" + "\\'" * (N // 2) + " real\n@data\n",
    "comments of Weka": "%\n\n" * (N // 3),
    "a label and blanks": "1" + " " * N + "x",
    "a number of digits": "1" * 60_000 + " 1:" + "1" * N + "\n",
    "sizes": "#1.2\n" + "1\t" * (N // 2) + "\nName\tDescription\ts1\ts2\n",
}


def main() -> None:
    signal.setitimer(signal.ITIMER_PROF, MOST_WORK)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.csv"
        for name, text in TABLES.items():
            file.write_text(text)
            print(name, end=" ", flush=True)
            start = time.process_time()
            with suppress(*REFUSALS):
                read_table(file, "type", max_memory=2**34)
            print(f"{time.process_time() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
