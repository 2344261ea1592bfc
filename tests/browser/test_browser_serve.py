"""`paceline serve` as somebody uses it: a run that appears, grows and is stopped; two compared."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.web.pages import FIRST
from tools.sample_folders import sample_run

pytestmark = [pytest.mark.browser, pytest.mark.parallel, pytest.mark.timeout(120, method="signal")]

LONG = ("run", "--task", "softmax", "--strategy", "ps-async", "--workers", "2", "--epochs", "5000")
SECONDS = 30_000  # that playwright waits for anything, in its unit


@pytest.fixture
def address(cli: Any, eventually: Callable[..., Any]) -> Iterator[str]:
    """Of a page that serves the runs of `cli`, and ends with the test, at once."""
    serving = cli.start("serve", "--port", "0")
    found = eventually(lambda: re.search(r"http://\S+/", serving.stdout), 15, "its address")
    yield found[0]
    serving.process.send_signal(2)
    assert serving.wait(5) == 0, serving.stderr
    assert "Traceback" not in serving.stderr


def until(page: Any, script: str) -> None:
    """Looked at from outside: what playwright would wait with, the page's policy forbids."""
    deadline = time.monotonic() + SECONDS / 1000
    while not page.evaluate(script):
        assert time.monotonic() < deadline, f"never true: {script}"
        page.wait_for_timeout(100)


def test_a_run_is_watched_and_stopped(
    address: str, visitor: Any, axe: Any, cli: Any, tmp_path: Path
) -> None:
    page = visitor.open(address)
    assert "No runs yet" in page.inner_text("main")
    run = cli.start(*LONG)
    page.wait_for_selector("tr[data-part] >> text=running", timeout=SECONDS)  # not loaded again
    assert not axe.faults(page)

    page.keyboard.press("/")
    page.keyboard.type("softmax nothing-like-it")
    assert page.is_visible("#none")
    page.keyboard.press("Escape")
    page.click("tbody a")
    page.wait_for_selector("figure[data-chart=throughput] .main-svg", timeout=SECONDS)
    until(page, "document.querySelector('[data-part=state]').innerText.includes('samples/s now')")
    page.evaluate("window.first = document.querySelector('[data-part=state]').innerText")
    until(page, "document.querySelector('[data-part=state]').innerText !== window.first")
    page.evaluate("window.drawn = document.querySelector('.plot').data[0].x.at(-1)")
    until(page, "document.querySelector('.plot').data[0].x.at(-1) > window.drawn")
    assert page.inner_text("[data-part=answer] .said").strip()
    assert not axe.faults(page)

    page.on("dialog", lambda dialog: dialog.accept())
    page.click("[data-stop]")
    until(page, "document.querySelector('#told').innerText === 'It is stopped now.'")
    assert page.query_selector("[data-stop]") is None
    assert run.wait(20) == 130
    _compare(address, visitor, axe, tmp_path / "runs")


def _compare(address: str, visitor: Any, axe: Any, runs: Path) -> None:
    """Two others appear in a page that is open; they are ticked and compared by keyboard alone."""
    page = visitor.open(address, color_scheme="dark", viewport={"width": 390, "height": 800})
    (folder,) = runs.iterdir()
    page.focus("input[name=with]")
    page.keyboard.press("Space")
    hostile = "<img src=x onerror=alert(1)> & 100% #1?"
    shutil.copytree(folder, runs / hostile)
    until(page, "document.querySelectorAll('tr[data-part]').length === 2")
    ticks = page.query_selector_all("input[name=with]")
    assert [tick.is_checked() for tick in ticks].count(True) == 1  # it stayed, and so did focus
    assert page.evaluate("document.activeElement.checked")
    next(tick for tick in ticks if not tick.is_checked()).focus()
    page.keyboard.press("Space")
    assert page.inner_text("#compare") == "Compare 2"
    assert not axe.faults(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("figure[data-chart=rates] .main-svg", timeout=SECONDS)
    assert "What came of it" in page.inner_text("main")
    assert hostile in page.inner_text("ol.sides")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not axe.faults(page)
    page.click("ol.sides li:last-child a")
    assert page.inner_text("h1") in (hostile, folder.name)
    page.wait_for_selector(".main-svg", timeout=SECONDS)
    shutil.rmtree(runs / hostile)
    shutil.rmtree(folder)
    until(page, "document.querySelector('[data-part=wrong]').innerText.includes('gone')")


def test_rows_beyond_the_first_screens_come_after_them(
    address: str, visitor: Any, tmp_path: Path
) -> None:
    """They wait in a script: names that would end one, or begin another, do neither."""
    last = sample_run(tmp_path / "runs").path
    for n in range(FIRST + 5):
        shutil.copytree(last, last.with_name(f"<!-- <script> {n:02}"))
    page = visitor.open(address)
    until(page, f"document.querySelectorAll('tr[data-part]').length === {FIRST + 6}")
    page.fill("#filter", last.name)
    assert page.locator("tr[data-part]:visible").count() == 1
    assert "66 recorded" in page.inner_text("[data-part=counted]")
