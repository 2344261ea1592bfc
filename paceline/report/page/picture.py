"""Charts as pictures for slides, drawn by a browser without a window."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from paceline.errors import RequestError, RunFailed
from paceline.report.charts.chart import Chart
from paceline.report.page.document import Document
from paceline.report.page.html import environment, plotly_script, script_json

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    *("chrome", "microsoft-edge"),
)
WIDTH, HEIGHT = 1280, 720  # a slide; pictures have twice as many pixels
SECONDS = 60  # in which a browser draws one, or never will


def browser() -> str:
    """The first there is; RequestError that says what to install."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise RequestError(
            "--png needs a browser to draw with, and there is none on the PATH; install Chromium "
            "(apt install chromium) or Chrome, or take pictures from the page with its PNG buttons."
        )
    return found


def as_pictures(
    document: Document, folder: Path, progress: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """A PNG for each chart, in the order of the page; `folder` is made if there is none."""
    program = browser()
    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as wrong:
        raise RequestError(
            f"cannot make folder '{folder}': {(wrong.strerror or str(wrong)).lower()}."
        ) from None
    with tempfile.TemporaryDirectory(prefix="paceline-") as place:
        script = Path(place) / "plotly.js"
        script.write_text(plotly_script(), encoding="utf-8")
        for n, chart in enumerate(document.charts(), start=1):
            path = folder / f"{n:02}-{chart.name}.png"
            progress(path.name)
            _draw(program, chart, Path(place), path)
            made.append(path)
    return made


def _draw(program: str, chart: Chart, place: Path, path: Path) -> None:
    figure = {**chart.figure, "layout": {**chart.figure["layout"], "height": HEIGHT - 130}}
    page = environment().get_template("slide.html").render(chart=chart, figure=script_json(figure))
    slide = place / "slide.html"
    slide.write_text(page, encoding="utf-8")
    shot = place / "slide.png"
    shot.unlink(missing_ok=True)
    command = [
        *(program, "--headless=new", "--hide-scrollbars", "--force-device-scale-factor=2"),
        *("--disable-gpu", "--no-first-run", f"--user-data-dir={place / 'profile'}"),
        *([] if os.geteuid() else ["--no-sandbox"]),  # which root may not have
        *(f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}", slide.as_uri()),
    ]
    try:
        subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise RunFailed(f"'{program}' could not draw '{path.name}': {wrong}.") from None
    if not shot.is_file():
        raise RunFailed(f"'{program}' drew nothing for '{path.name}'; is it a working browser?")
    shutil.move(shot, path)
