"""Chromium for tests: one browser per session, or a reason why there is none."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium():
    """Yield a headless browser; without one skip the tests, but in CI, which installs it, fail."""
    file = os.environ.get("L20FS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if file is None and os.environ.get("CI") != "true":
        pytest.skip("no Chromium here: apt-get install chromium, or set L20FS_CHROMIUM to one")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright to test pages")
    assert file, "CI must install Chromium; see .ci/run"
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=file, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page that was opened from disk, with all it asked for and complained about."""

    def __init__(self, context, file):
        self.complaints, self.requests = [], []
        context.set_default_timeout(120_000)  # a busy machine fails no test
        self.page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())


def violations(page):
    """Return what axe finds wrong, in the dark the contrast of colours alone: all else is the same there."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    page.emulate_media(color_scheme="dark")
    found += axe.run(page, options={"runOnly": ["color-contrast"]}).response["violations"]
    return [(entry["id"], entry["impact"], entry["nodes"][0]["html"]) for entry in found]
