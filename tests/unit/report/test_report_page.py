"""The report of a run and a sweep, in each of its forms."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from paceline.cli.main import main
from paceline.report.page.build import build
from paceline.report.page.html import as_html, script_json
from paceline.report.page.markdown import as_markdown
from paceline.report.page.repeat import command, repeat_run, repeat_sweep
from paceline.report.page.sheet import as_csv
from paceline.spec import RunSpec, write_toml
from paceline.store.folder import RunFolder
from paceline.store.sweeps import SweepFolder
from paceline.study.read import read_study
from paceline.study.study import Study
from tools.sample_folders import sample_run, sample_sweep

MOST = 6_000_000  # bytes of a page
EVIL = '<script>alert("x")</script>.py:Task'


class Page(HTMLParser):
    """Tags, and what a browser would fetch or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.asked: list[str] = []
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.asked += [v or "" for k, v in attrs if k in ("src", "href") and not v.startswith("#")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_run(tmp_path_factory.mktemp("runs")).path


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_sweep(tmp_path_factory.mktemp("runs")).path


def test_a_runs_page_says_first_what_came_of_it(run: Path) -> None:
    document = build([run])
    text = as_html(document)
    page = Page(text)
    (chapter,) = document.chapters
    assert chapter.answer[0].endswith("s.")
    assert text.index(chapter.question.split("?")[0]) < text.index("Training loss")
    names = {chart.name for chart in document.charts()}
    assert names >= {"accuracy", "training-loss", "throughput", "phases", "resources", "staleness"}
    assert names >= {"traffic", "faults"}
    assert page.asked == []
    assert len(text.encode()) < MOST
    assert page.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))


def test_a_sweeps_page_has_speedup_and_every_run(sweep: Path) -> None:
    document = build([sweep])
    names = [chart.name for chart in document.charts()]
    assert {"rates", "speedup", "efficiency", "accuracy", "training-loss", "phases"} <= set(names)
    text = as_html(document)
    assert len(text.encode()) < MOST
    assert Page(text).asked == []
    assert "It died." in text
    rows = list(csv.DictReader(io.StringIO(as_csv(document))))
    assert [row["fault"] for row in rows].count("It died.") == 1
    assert {row["repeat"] for row in rows} == {"0", "1", "2"}


def test_several_runs_are_held_side_by_side(run: Path, tmp_path: Path) -> None:
    other = sample_run(tmp_path, "ps-sync").path
    document = build([run, other])
    assert [chapter.name for chapter in document.chapters] == ["together", run.name, other.name]
    assert "not interleaved" in " ".join(document.chapters[0].answer)


def test_what_has_hardly_begun_has_a_page_too(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, RunSpec(strategy="ps-sync", workers=2)).path
    about = {"name": "a", "base": "a", "fields": {}, "spec": RunSpec().model_dump()}
    study = Study(vary={"batch": (1, 2)}).as_object()
    sweep = SweepFolder.create(tmp_path, "new", study, [about], {"b": ["it cannot be."]}).path
    document = build([run, sweep])
    assert list(document.charts()) == []
    assert "Nothing has been measured yet." in as_html(document)
    assert "it cannot be." in as_markdown(document)


def test_whatever_comes_from_a_run_is_escaped(tmp_path: Path) -> None:
    folder = sample_run(tmp_path)
    path = folder.path / "spec.json"
    about: dict[str, Any] = json.loads(path.read_text())
    about["resolved"]["task"] = about["spec"]["task"] = EVIL
    about["host"]["name"] = "</style><img src=x onerror=alert(1)>"
    path.write_text(json.dumps(about))
    text = as_html(build([folder.path], title=EVIL))
    page = Page(text)
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert "<script>alert" not in text
    prose = re.sub("```.*?```", "", as_markdown(build([folder.path])), flags=re.DOTALL)
    assert "<script>" not in prose.replace("\\<", "")


def test_json_in_a_script_ends_no_script() -> None:
    told = {"a": "</script><!--\u2028&"}
    text = str(script_json(told))
    assert "<" not in text
    assert json.loads(text) == told


def test_the_spec_of_a_report_repeats_the_run(run: Path, sweep: Path, tmp_path: Path) -> None:
    about = json.loads((run / "spec.json").read_text())
    listings = {part.caption: part for part in repeat_run(about) if hasattr(part, "language")}
    told = next(part.text for caption, part in listings.items() if caption.startswith("The spec"))
    assert (
        RunSpec(**tomllib.loads(told)).model_dump()
        == RunSpec(
            **{k: tuple(v) if isinstance(v, list) else v for k, v in about["spec"].items()}
        ).model_dump()
    )
    study = json.loads((sweep / "study.json").read_text())
    study["study"]["target"] = ["accuracy", 0.9]
    text = next(p.text for p in repeat_sweep(study) if getattr(p, "caption", "")[:9] == "The study")
    file = tmp_path / "study.toml"
    file.write_text(text)
    assert read_study(file).as_object() == study["study"]


def test_commands_are_as_they_were_typed() -> None:
    assert command(["/usr/bin/paceline", "run", "--inject", "a b"]) == (
        "paceline run --inject 'a b'\n"
    )
    assert command(["fit.py"]) == "python fit.py\n"


def test_toml_is_read_back_as_it_was() -> None:
    told = {"a": 'x"\\\n\x7f', "b": [1, 2.5, True], "c": None, "t": {"k y": [{"z": 1}]}}
    assert tomllib.loads(write_toml(told)) == {k: v for k, v in told.items() if v is not None}


# The verb.


def test_the_verb_writes_what_it_is_asked_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, md, sheet = tmp_path / "r.html", tmp_path / "r.md", tmp_path / "r.csv"
    asked = [str(run), "-o", str(page), "--md", str(md), "--csv", str(sheet)]
    for _ in range(2):  # a report may be made again
        assert main(["report", *asked, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["page"] == str(page)
    assert page.read_text().lstrip().startswith("<!doctype html>")
    assert len(list(csv.reader(sheet.open()))) == 2


def test_what_is_no_report_is_not_replaced(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "thesis.md"
    thesis.write_text("Years of work.")
    assert main(["report", str(run), "--md", str(thesis)]) == 2
    assert "--force" in capsys.readouterr().err
    assert thesis.read_text() == "Years of work."
    assert main(["report", str(run), "--md", str(thesis), "--force"]) == 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--machine", "g3.4xlarg"], "g3.4xlarge"),
        (["--workers-per-machine", "2"], "--machine"),
        (["-o", "nowhere/r.html"], "there is no folder"),
        (["--md", "a.x", "--csv", "a.x"], "different files"),
        (["--md", "a.md", "--open"], "-o"),
    ],
)
def test_wrong_requests_are_told(
    run: Path,
    tmp_path: Path,
    flags: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(run), *flags]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_pictures_need_a_browser(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["report", str(run), "--png", "pictures"]) == 2
    assert "apt install chromium" in capsys.readouterr().err
