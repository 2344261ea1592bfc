"""The report's file, opened as people do: offline, in Chromium."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.report.page.build import build
from paceline.report.page.document import Document
from paceline.report.page.html import as_html
from paceline.report.page.picture import as_pictures
from tools.sample_folders import sample_run, sample_sweep

pytestmark = pytest.mark.browser

LOOKS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(sample_run(tmp_path_factory.mktemp("run")).path)


@pytest.fixture(scope="module")
def sweep_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(sample_sweep(tmp_path_factory.mktemp("sweep")).path)


def written(path: Path) -> Path:
    file = path / "report.html"
    file.write_text(as_html(build([path])))
    return file


def draw_all(page: Any) -> int:
    """Open what is folded and have every chart drawn: how many there are."""
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    count = int(page.evaluate("document.querySelectorAll('.chart').length"))
    for n in range(count):
        page.locator(".chart").nth(n).scroll_into_view_if_needed()
        page.locator(".chart").nth(n).locator("svg.main-svg").first.wait_for()
    return count


@pytest.mark.matrix(1)
@pytest.mark.parametrize("look", LOOKS)
def test_it_opens_offline_and_keeps_nobody_out(
    visitor: Any, axe: Any, page_file: Path, look: str
) -> None:
    page = visitor.open(page_file.as_uri(), **LOOKS[look])
    page.wait_for_selector("html[data-ready]")
    assert draw_all(page) == 9
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= LOOKS[look]["viewport"]["width"]
    assert axe.faults(page) == []


def test_views_are_chosen_with_the_keyboard(visitor: Any, page_file: Path) -> None:
    page = visitor.open(page_file.as_uri())
    button = page.locator("[data-view=epochs]").first
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    chart = page.locator("figure", has=button).locator(".g-xtitle")
    chart.get_by_text("epochs").wait_for()


@pytest.mark.thorough
def test_on_paper_all_charts_of_a_sweep_are_there(visitor: Any, axe: Any, sweep_file: Path) -> None:
    page = visitor.open(sweep_file.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.pdf(format="A4")
    assert page.evaluate("document.querySelectorAll('.chart').length") > 10
    assert page.evaluate("document.querySelectorAll('.chart:not(:has(svg.main-svg))').length") == 0
    assert axe.faults(page) == []


def test_charts_become_pictures(chromium: Any, tmp_path: Path) -> None:
    (chapter,) = build([sample_run(tmp_path, "single", 1).path]).chapters
    only = [each for each in chapter.sections if each.title == "Speed"]
    document = Document(title="", made="", chapters=[replace(chapter, sections=only)])
    (picture,) = as_pictures(document, tmp_path / "slides")
    assert picture.name == "01-throughput.png"
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (2560, 1440)
