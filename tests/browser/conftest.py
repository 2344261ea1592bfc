"""Pages as people see them: in a real Chromium, without a network, and without a fault."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the dev extra")

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LOCAL = ("file", "data", "blob", "about")
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for the tests of a file, since its event loop keeps out any other in the process;
    skipped by name where there is none."""
    program = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("there is no Chromium on the PATH: apt install chromium")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        yield browser
        browser.close()


class Visitor:
    """Opens pages, and keeps what they should not have done."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.faults: list[str] = []

    def open(self, url: str, **look: Any) -> Any:
        """A page in a context of its own: `look` is what playwright's new_context takes.

        Whatever is asked of any other place than the page's own is refused, and a fault; so is
        every error on the console.
        """
        context = self._browser.new_context(**look)
        self._contexts.append(context)
        own = urlsplit(url).netloc

        def ask(route: Any) -> None:
            asked = urlsplit(route.request.url)
            if asked.scheme in LOCAL or (own and asked.netloc == own):
                route.continue_()
            else:
                self.faults.append(f"asked for {route.request.url}")
                route.abort()

        context.route("**/*", ask)
        page = context.new_page()
        page.on("pageerror", lambda wrong: self.faults.append(f"error: {wrong}"))
        page.on("console", self._console)
        page.goto(url)
        return page

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def visitor(chromium: Any) -> Iterator[Visitor]:
    """After the test no page may have failed, or asked for anything from elsewhere."""
    found = Visitor(chromium)
    yield found
    found.close()
    assert not found.faults


class Axe:
    """axe-core, which finds what keeps people from using a page."""

    def __init__(self, script: str) -> None:
        self._script = script

    def faults(self, page: Any) -> list[str]:
        """Serious ones, a line each: the rule, and where."""
        page.evaluate(self._script)
        found = page.evaluate("axe.run()")["violations"]
        return [
            f"{rule['id']}: {rule['help']}: {[node['html'][:120] for node in rule['nodes'][:3]]}"
            for rule in found
            if rule["impact"] in SERIOUS
        ]


@pytest.fixture(scope="session")
def axe() -> Axe:
    """Its script comes in a Python package, which is not imported."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or not found.origin:
        pytest.skip("needs axe-playwright-python, of the dev extra")
    return Axe((Path(found.origin).parent / "axe.min.js").read_text("utf-8"))
