"""Write the tables of formats and of settings into docs/reference.md, from the records that the package itself reads.

``python tools/settings_table.py`` writes them, ``--check`` fails if they are not up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

from l20fs.tables.formats import FORMATS
from l20fs.tables.settings import SECTIONS

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"


def formats() -> str:
    """Return the table of formats."""
    rows = ["| file | ending | samples in | labels, besides a file of their own | extra |", "|---|---|---|---|---|"]
    for each in FORMATS.values():
        packed = " `.gz`" if each.is_text or each.name == "10x" else ""
        endings = " ".join(f"`{ending}`" for ending in each.endings)
        rows.append(f"| {each.name} | {endings}{packed} | {each.samples} | {each.labels or '-'} | {each.packages or '-'} |")
    return "\n".join(rows)


def settings() -> str:
    """Return the table of settings."""
    rows = ["| key | values | default | meaning |", "|---|---|---|---|"]
    for section, kind in SECTIONS.items():
        types = get_type_hints(kind)
        for name, about in kind.__dataclass_fields__.items():
            kinds = (types[name], *get_args(types[name]))
            choices = [choice for each in kinds if get_origin(each) is Literal for choice in get_args(each)]
            words = [f"`{choice}`" for choice in choices]
            words += ["number"] if {int, float} & set(kinds) else []
            default = f"`{about.default}`" if about.default not in (None, ()) else "-"
            rows.append(f"| `{section}.{name}` | {' '.join(words) or 'text'} | {default} | {about.metadata['help']} |")
    return "\n".join(rows)


def written(page: str) -> str:
    """Return the page with its tables as they are now."""
    for name, table in (("formats", formats()), ("settings", settings())):
        head, _, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{head}<!-- {name} -->\n{table}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return page


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    new = written(page)
    if "--check" in sys.argv:
        return int(page != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
