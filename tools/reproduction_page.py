"""Write docs/reproduction.md and its figures from a folder that `l20fs reproduce all` has filled.

    python tools/reproduction_page.py out --minutes paper=13 repeats=20 honest=60

The text is in reproduction_page.md beside this file; tables and statements come from the run.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import pandas as pd

from l20fs.experiments.claims import CLAIMS, describe_claim
from l20fs.experiments.repeats import repeats, repeats_beside_published
from l20fs.experiments.summary import CLAIMS_TITLE, summary
from l20fs.report.document import Block, Heading
from l20fs.report.formats import write_markdown

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", nargs=3, metavar="WHAT=MINUTES", required=True, help="of paper, repeats and honest")
    arguments = parser.parse_args()
    text = (Path(__file__).parent / "reproduction_page.md").read_text(encoding="utf-8")
    minutes = dict(entry.split("=") for entry in arguments.minutes)
    words = {f"{name}_minutes": value for name, value in minutes.items()} | said_about(arguments.folder)

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name in words:
            return words[name]
        return (arguments.folder / f"{name}.md").read_text(encoding="utf-8").strip()

    text = re.sub(r"\{([\w-]+)\}", fill, text)
    figures = ROOT / "docs" / "reproduction"
    figures.mkdir(exist_ok=True)
    for name in re.findall(r"\(reproduction/([\w-]+\.png)\)", text):
        shutil.copyfile(arguments.folder / name, figures / name)
    (ROOT / "docs" / "reproduction.md").write_text(text, encoding="utf-8")


def said_about(folder: Path) -> dict[str, str]:
    """Return the summary below headings of this page, and what is said about each figure beside it."""
    rows = pd.read_csv(folder / "rows.csv", dtype={"fold": "Int64", "n_nonzero": "Int64"}, low_memory=False)
    tables = {name: group.drop(columns="plan") for name, group in rows.groupby("plan", sort=False)}
    tables["traces"] = pd.read_csv(folder / "traces.csv")
    repeated = repeats_beside_published(repeats(tables["repeats"]))
    kept: list[Block] = []
    is_kept = False
    for block in summary(tables["accuracy"], repeated=repeated, others=tables):
        if isinstance(block, Heading):  # the title goes, and so do the claims, which stand beside their figures
            is_kept = block.level == 2 and block.text != CLAIMS_TITLE
            block = Heading(block.text, level=3)
        if is_kept:
            kept.append(block)
    words = {"summary": write_markdown(kept).strip()}
    for name in CLAIMS:
        shown = "convergence" if name == "traces" else name
        words[f"{shown}_words"] = write_markdown(describe_claim(name, tables[name])).strip()
    return words


if __name__ == "__main__":
    main()
