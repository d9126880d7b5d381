"""Pages in Chromium, for all tests of this folder."""

from __future__ import annotations

import pytest
from browser import Opened, chromium

from l20fs.report import render


@pytest.fixture(scope="package")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    """Open a report, or a finished page, from disk; at the end nothing may have been asked for or complained of."""
    contexts = []

    def show(page, **options):
        file = tmp_path / f"report-{len(contexts)}.html"
        file.write_text(page if isinstance(page, str) else render(page), encoding="utf-8")
        contexts.append(browser.new_context(**options))
        opened = Opened(contexts[-1], file)
        if options.get("java_script_enabled", True) and opened.page.locator("#controls").count():
            opened.page.locator("#controls").wait_for()
        opened_pages.append((opened, file))
        return opened.page

    opened_pages = []
    yield show
    for opened, file in opened_pages:
        assert opened.complaints == []
        assert opened.requests == [file.as_uri()]
    for context in contexts:
        context.close()
