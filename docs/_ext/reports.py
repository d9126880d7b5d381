"""What the gallery shows besides pictures: the report pages that its examples write, opened from the site.

An example that writes a report page leaves its path in a variable ``report``; the page is copied into the site and linked
below the block that wrote it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "gallery" / "reports"

#: The examples, from the first question to the last.
ORDER = (
    "tumour_panel",
    "how_many_genes",
    "stability",
    "near_equal_panels",
    "constraints_and_costs",
    "coming_from_scikit_learn",
    "wrong_labels",
    "many_outputs",
    "wide_text",
    "single_cell",
    "larger_than_memory",
)

LINK = """
.. raw:: html

   <p><a class="sd-btn sd-btn-primary" href="../reports/{name}.html">Open the report page of this run</a></p>
   <iframe class="report-frame" src="../reports/{name}.html" title="Report page of this run" loading="lazy"></iframe>

"""


def in_order(file: str) -> int:
    """Return the place of an example in the gallery."""
    return ORDER.index(Path(file).stem)


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Copy the report page that a block has written, and return the text that links it."""
    report = block_vars["example_globals"].pop("report", None)
    if report is None:
        return ""
    name = Path(block_vars["src_file"]).stem
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(report, FOLDER / f"{name}.html")
    return LINK.format(name=name)


def _get_sg_image_scraper() -> Any:
    return scrape


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """Copy the report pages into the site."""
    if error is None and app.builder.name == "html" and FOLDER.exists():
        shutil.copytree(FOLDER, Path(app.outdir) / "reports", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy the pages when the site is built."""
    app.connect("build-finished", copy_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
