"""The pictures in the documentation, made from real runs: `make pictures`, or by name
`python tools/pictures.py report`.

Each picture is of commands of the README, run in a folder of their own: what they printed, drawn
as a terminal shows it, or the page they made, as Chromium shows it. Nothing is retouched. A run
during which other work took more than a tenth of the machine is refused, whatever it showed: its
speedups would be those of the other work. So which run is shown is decided by how quiet the
machine was, never by how the figures look.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import psutil
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from paceline.report.page.picture import browser

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 96  # characters: the demo's widest table, and still legible in half a screen
SECONDS = 600
MOST_BY_OTHERS = 0.1  # of all cores, while a picture's command runs


@dataclass(frozen=True)
class Picture:
    name: str
    shown: str  # what a person types
    arguments: tuple[str, ...]  # of paceline, which is what that runs


TERMINAL = (Picture("demo", "make demo", ("demo",)),)
REPORT = (
    "sweep --study strong --task lenet --workers 1,2 --strategy allreduce,ps-sync,ps-async "
    "--repeats 3 --quiet",
    "report last -o report.html --quiet",
)
PAGE = (1180, 1560)  # pixels of the page that are shown

THEME = TerminalTheme(
    (24, 26, 31),
    (222, 226, 232),
    [
        *((24, 26, 31), (240, 113, 120), (152, 195, 121), (229, 192, 123)),
        *((97, 175, 239), (198, 120, 221), (86, 194, 205), (200, 204, 212)),
    ],
)

# Rich's own frame names a font on the web; this one takes what the reader's machine has.
FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
    white-space: pre;
}}
.{unique_id}-title {{ font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 16px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Others:
    """How much of the machine all but our own children used since this was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._before = self._busy() - self._ours()

    def share(self) -> float:
        used = self._busy() - self._ours() - self._before
        return used / ((time.monotonic() - self._began) * (psutil.cpu_count() or 1))

    @staticmethod
    def _busy() -> float:
        """Seconds all cores were busy, what a hypervisor took from this machine included."""
        times = psutil.cpu_times()
        return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)

    @staticmethod
    def _ours() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def printed(arguments: tuple[str, ...], folder: Path) -> str:
    """What the command says on standard output to a terminal of that width, colours included."""
    done = subprocess.run(
        [sys.executable, "-m", "paceline.cli", *arguments],
        cwd=folder,
        env={
            **{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PACELINE_RUNS")},
            "COLUMNS": str(WIDTH),
            "FORCE_COLOR": "1",
            "TERM": "xterm-256color",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"paceline {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def draw(picture: Picture, output: str) -> str:
    console = Console(record=True, width=WIDTH, file=StringIO(), highlight=False, emoji=False)
    console.print(Text.assemble(("$ ", "dim"), (picture.shown, "bold")))
    console.print()
    console.print(Text.from_ansi(output), end="")
    return console.export_svg(
        title="paceline", theme=THEME, code_format=FRAME, unique_id=picture.name
    )


def photograph(page: Path, path: Path) -> None:
    """The top of a page, as a browser without a window shows it."""
    subprocess.run(
        [
            *(browser(), "--headless=new", "--hide-scrollbars", "--disable-gpu"),
            *([] if os.geteuid() else ["--no-sandbox"]),
            f"--user-data-dir={page.parent / 'profile'}",
            *(f"--window-size={PAGE[0]},{PAGE[1]}", f"--screenshot={path}", page.as_uri()),
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Refuse what came of it if others used the machine meanwhile."""
    others = Others()
    yield
    taken = others.share()
    if taken > MOST_BY_OTHERS:
        sys.exit(
            f"{name}: other work took {taken:.0%} of the machine meanwhile, "
            f"at most {MOST_BY_OTHERS:.0%} will do; try again when it is quiet."
        )
    sys.stderr.write(f"{name}: others took {taken:.0%} of the machine\n")


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    asked = sys.argv[1:] or [*(picture.name for picture in TERMINAL), "report"]
    for picture in TERMINAL:
        if picture.name in asked:
            with tempfile.TemporaryDirectory() as folder, quiet(picture.name):
                output = printed(picture.arguments, Path(folder))
            (PICTURES / f"{picture.name}.svg").write_text(draw(picture, output), encoding="utf-8")
    if "report" in asked:
        with tempfile.TemporaryDirectory() as folder:
            with quiet("report"):
                for command in REPORT:
                    printed(tuple(command.split()), Path(folder))
            photograph(Path(folder) / "report.html", PICTURES / "report.png")


if __name__ == "__main__":
    main()
