"""The README tells the truth: its commands and its Python are taken from its text and run.

Blocks of Python and TOML name their file in the first line and are put into one folder, as a
reader would. The shell commands of a block run there, one after the other, against the installed
package.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from paceline.cli import launch, main
from paceline.spec import RunSpec
from paceline.spec.runspec import flag

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("docs/ARCHITECTURE.md", "docs/SCALING.md"),
]
SECONDS = 25  # the longest a command of the README may take
STARTED = 77  # an exit code of ours: the request was right and a run would start now

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Done(NamedTuple):
    code: int
    printed: str


def blocks(language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(README) if kind == language]


def told(pattern: str) -> set[str]:
    """What any of the pages says in this form."""
    return {
        found
        for page in PAGES
        for found in re.findall(pattern, (ROOT / page).read_text(encoding="utf-8"))
    }


def files() -> dict[str, str]:
    """Blocks that are files, by the name in their first line."""
    found = {}
    for body in blocks("python") + blocks("toml"):
        name = body.partition("\n")[0].removeprefix("# ")
        assert re.fullmatch(r"\w+\.(py|toml)", name), f"a block does not name its file: {name}"
        found[name] = body
    return found


def shell() -> list[list[str]]:
    """The lines of every shell block, and after them the Python files that no line mentions.

    A block that begins with a look at the last run goes on from the one before. Of a block in which
    all lines are runs, each line stands for itself.
    """
    found: list[list[str]] = []
    for body in blocks("sh"):
        lines = [line for line in body.splitlines() if line.strip()]
        if re.match(r"paceline \w+ last\b", lines[0]):
            found[-1] += lines
        elif all(line.startswith("paceline run ") for line in lines):
            found += [[line] for line in lines]
        else:
            found.append(lines)
    scripts = [name for name in files() if name.endswith(".py")]
    said = [line for lines in found for line in lines]
    return found + [[f"python {name}"] for name in scripts if not any(name in s for s in said)]


COMMANDS = [line for lines in shell() for line in lines]
MAKE = [line.split()[1] for line in COMMANDS if line.startswith("make ")]
TYPED = [[s for s in lines if s.split()[0] in ("paceline", "python")] for lines in shell()]
RUN = [line for lines in TYPED for line in lines]
SETTING_UP = {". .venv/bin/activate"}


def typed(line: str, folder: Path) -> Done:
    """What comes of a command that somebody types in a folder of their own."""
    bin_dir = Path(sys.executable).parent
    environment = {k: v for k, v in os.environ.items() if k != "PACELINE_RUNS"}
    process = subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env={**environment, "PATH": f"{bin_dir}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # of our own session: the command alone
        printed, _ = process.communicate()
        return Done(-1, f"{printed}\nstill running after {SECONDS} s")
    return Done(process.returncode, printed)


def test_every_command_is_one_that_is_checked_here() -> None:
    assert len(RUN) > 5
    assert {"demo", "test"} <= set(MAKE)
    known = {f"make {target}" for target in MAKE} | set(RUN) | SETTING_UP
    assert set(COMMANDS) <= known


@pytest.mark.parallel
@pytest.mark.timeout(180, method="signal")
@pytest.mark.parametrize("lines", [lines for lines in TYPED if lines], ids=lambda lines: lines[0])
def test_commands_work(lines: list[str], tmp_path: Path) -> None:
    """One after the other, since some look at what those before them have done."""
    for name, body in files().items():
        (tmp_path / name).write_text(body)
    for command in lines:
        done = typed(command, tmp_path)
        assert done.code == 0, f"{command}: {done.printed}"
        assert done.printed.strip(), command


@pytest.mark.timeout(30)
@pytest.mark.parametrize("target", sorted({*MAKE, *told(r"`make (\w+)`")}))
def test_make_has_the_target(target: str) -> None:
    made = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
    )
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("module", sorted(told(r"python -m ((?:bench|tools)\.\w+)`")))
def test_module_is_there(module: str) -> None:
    assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file()


@pytest.mark.parametrize("name", sorted(files()))
def test_file_is_what_its_name_says(name: str) -> None:
    body = files()[name]
    if name.endswith(".py"):
        ast.parse(body)
    else:
        told = tomllib.loads(body).keys()
        assert told <= RunSpec.model_fields.keys() or {"question", "vary"} <= told


def test_a_model_of_ones_own_takes_fifteen_lines() -> None:
    lines = [line for line in files()["rings.py"].splitlines() if line and line[0] != "#"]
    assert len(lines) <= 15


# What else the README says, as far as it can be checked without running anything.


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        found = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert found.is_file(), target
        if heading:
            assert heading in _headings(found.read_text(encoding="utf-8")), target


def _headings(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    picture = (ROOT / "docs" / "pictures" / "demo.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"')\s]+", picture)) == {"http://www.w3.org/2000/svg"}


VERBS = (*main.VERBS, launch.launch)


def test_flags_are_known() -> None:
    prose = FENCE.sub("", README)
    known = {name for verb in VERBS for name in _flags(verb)} | {"--help", "--from"}
    assert set(re.findall(r"`(--[a-z0-9-]+)", prose)) <= known


def _flags(verb: Callable[..., None]) -> set[str]:
    return {flag(name.rstrip("_")) for name in inspect.signature(verb).parameters}


# The examples in the help of each verb.

EXAMPLES = [
    line.strip().removeprefix("$ ")
    for verb in (main.paceline, *VERBS)
    for line in (inspect.getdoc(verb) or "").splitlines()
    if line.strip().startswith("$ paceline")
]


def test_help_has_examples() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_in_help_would_start(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything up to the run itself: flags, spec, files; or for `show`, the look for a run."""

    def started(*_: object, **__: object) -> None:
        raise typer.Exit(STARTED)

    monkeypatch.setattr("paceline.api.execute", started)
    monkeypatch.setattr("paceline.api.launch_script", started)
    monkeypatch.setattr("paceline.store.folder.RunFolder.find", started)
    monkeypatch.setattr("paceline.store.lookup.locate", started)
    monkeypatch.setattr("paceline.report.costs.price_published", started)
    monkeypatch.setattr("paceline.data.sparse.convert.convert", started)
    monkeypatch.setattr("paceline.store.listing.list_runs", started)
    monkeypatch.setattr("paceline.doctor.examine.examine", started)
    monkeypatch.setattr("paceline.web.serve.listen", started)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('task = "softmax"\n')
    (tmp_path / "study.toml").write_text("[vary]\nbatch = [10, 20]\n")
    (tmp_path / "train.py").write_text("")
    (tmp_path / "secret").write_text("0123456789abcdef")
    for name in ("day_0.gz", "day_1.gz"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "visits.csv").write_text("bought,site,hour\n")
    assert main.main(shlex.split(example)[1:]) == STARTED
