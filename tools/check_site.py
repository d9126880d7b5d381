"""Check the built documentation site: links and anchors, nothing loaded from outside, accessibility in Chromium.

Run ``python tools/check_site.py build/docs/html``; ``make docs`` does. Links to other sites are not followed. Where Chromium
or playwright is missing the last check is left out, and a line says so; ``--screenshots FOLDER`` also takes pictures.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

#: Elements that load something, with the attribute that names it.
LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "image": "href",
    "use": "href",
}

#: Kinds of <link> that load nothing.
NAMING = {"canonical", "next", "prev", "index", "search", "author", "alternate", "license", "help", "top", "up"}

#: Pages that are opened in the browser: one of each kind.
OPENED = (
    "index.html",
    "tutorial_table.html",
    "gallery/index.html",
    "gallery/tumour_panel.html",
    "gallery/single_cell.html",
    "generated/l20fs.L20Selector.html",
    "api.html",
    "alternatives.html",
    "reference.html",
    "search.html?q=stability",
)

#: Widths of a desktop and of a phone.
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Page(HTMLParser):
    """What a page has: places that can be linked, links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        has = {name: value or "" for name, value in attrs}
        self.anchors |= {has[name] for name in ("id", "name") if has.get(name)}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        if tag == "link" and not NAMING & set(has.get("rel", "").split()):
            self.loads.append(has.get("href", ""))
        if LOADING.get(tag) in has:
            self.loads.append(has[LOADING[tag]])


def faults_of_links(root: Path) -> Iterator[str]:
    """Yield links and loaded files inside the site that lead nowhere, and what is loaded from outside."""
    files = [file for file in sorted(root.rglob("*.html")) if "_static" not in file.relative_to(root).parts]
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in files}
    for file, page in pages.items():
        name = file.relative_to(root.resolve())
        for link in page.loads:
            if urlsplit(link).scheme in ("http", "https") or link.startswith("//"):
                yield f"{name} loads {link}"
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not target.is_file():
                yield f"{name}: no file for {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: no place for {link}"
    for sheet in sorted(root.rglob("*.css")):
        text = sheet.read_text(encoding="utf-8")
        if re.search(r"""(url\(|@import\s*)["']?(https?:)?//""", text):
            yield f"{sheet.relative_to(root)} loads something from outside"


def faults_in_browser(root: Path, pictures: Path | None) -> Iterator[str]:
    """Yield what axe finds serious on pages of each kind, light and dark, and what they ask for outside the site."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--allow-file-access-from-files"])
        for device, (width, height) in WIDTHS.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                page = context.new_page()
                asked: list[str] = []
                page.on("request", lambda request, asked=asked: asked.append(request.url))
                page.on("pageerror", lambda error, asked=asked: asked.append(f"script error: {error}"))
                for name in OPENED:
                    page.goto(f"{root.resolve().as_uri()}/{name}")
                    page.wait_for_timeout(600)
                    place = f"{name} ({device}, {scheme})"
                    if pictures:
                        stem = name.partition(".html")[0].replace("/", "-")
                        page.screenshot(path=pictures / f"{stem}-{device}-{scheme}.png")
                    yield from (f"{place}: {fault}" for fault in serious(Axe().run(page).response["violations"]))
                    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"):
                        yield f"{place}: wider than the window"
                yield from (
                    f"{url} ({device}, {scheme})" for url in asked if not url.startswith(("file:", "data:", "blob:"))
                )
                context.close()
        browser.close()


def serious(violations: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the serious and critical findings of axe, each with the first element that has it."""
    for entry in violations:
        if entry["impact"] in ("serious", "critical"):
            yield f"{entry['id']} ({entry['impact']}, {len(entry['nodes'])} times): {entry['nodes'][0]['html'][:200]}"


def chromium() -> str | None:
    """Return the browser, if there is one."""
    return os.environ.get("L20FS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def main() -> int:
    """Print all faults and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    faults = list(faults_of_links(arguments.root))
    if chromium() is None or find_spec("axe_playwright_python") is None:
        print(
            "No Chromium, or no axe-playwright-python: pages were not opened. apt-get install chromium, or $L20FS_CHROMIUM."
        )
    else:
        if arguments.screenshots:
            arguments.screenshots.mkdir(parents=True, exist_ok=True)
        faults += faults_in_browser(arguments.root, arguments.screenshots)
    for fault in dict.fromkeys(faults):
        print(fault)
    n_pages = len(list(arguments.root.rglob("*.html")))
    print(
        f"{len(faults)} faults in {n_pages} pages"
        if faults
        else f"{n_pages} pages: all links lead somewhere, nothing is loaded from outside."
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
