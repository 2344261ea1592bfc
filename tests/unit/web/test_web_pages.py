"""Every page, of whatever lies in the folder: a page or a sentence, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from web_client import TestClient
from web_samples import a_run, a_sweep, happened, take_steps

from paceline.store.folder import RunFolder
from paceline.web.index import Index
from paceline.web.list_page import ListPage
from paceline.web.now import now
from paceline.web.run_page import RunPage

HOSTILE = "<script>alert(1)</script>"


def test_an_empty_folder_and_none_at_all(client: TestClient, runs: Path) -> None:
    assert "No runs yet" in client.get("/").text
    runs.mkdir()
    assert "No runs yet" in client.get("/").text


def test_runs_and_sweeps_have_pages(client: TestClient, runs: Path) -> None:
    run, sweep = a_run(runs), a_sweep(runs)
    listed = client.get("/").text
    assert run.name in listed
    assert sweep.name in listed
    shown = client.get(f"/at/{run.name}")
    assert shown.status_code == 200
    for said in ("Throughput over time", "What holds it back", "worker-1", "91.00 %"):
        assert said in shown.text
    swept = client.get(f"/at/{sweep.name}").text
    assert "2 workers" in swept
    inside = next(sweep.runs.iterdir()).name
    assert inside in swept
    assert client.get(f"/at/{sweep.name}/{inside}").status_code == 200


def test_two_runs_two_sweeps_and_many_runs_are_compared(client: TestClient, runs: Path) -> None:
    names = [a_run(runs, f"run-{n}", seed=n).name for n in range(3)]
    two = client.get("/compare", params={"with": names[:2]}).text
    assert "seed" in two
    assert "their own steps" in two
    assert client.get("/compare", params={"with": names}).status_code == 200
    sweeps = [a_sweep(runs).name, a_sweep(runs).name]
    assert "2 workers" in client.get("/compare", params={"with": sweeps}).text
    inner = [f"{sweeps[0]}/{each.name}" for each in sorted((runs / sweeps[0] / "runs").iterdir())]
    assert client.get("/compare", params={"with": inner[:2]}).status_code == 200
    for wrong in ([], names[:1], names[:1] * 2, [names[0], sweeps[0]], [names[0], "nothing"]):
        answer = client.get("/compare", params={"with": wrong})
        assert answer.status_code == 404
        assert 'class="said"' in answer.text


def test_everything_that_came_from_a_run_is_escaped(client: TestClient, runs: Path) -> None:
    folder = a_run(runs, "x")
    happened(folder, HOSTILE)
    about = json.loads((folder.path / "spec.json").read_text())
    for spec in (about["spec"], about):
        spec["task"] = f"mine.py:{HOSTILE}"
    (folder.path / "spec.json").write_text(json.dumps(about))
    shutil.copytree(folder.path, runs / "of\x07another\nkind")  # has no page
    named = runs / f"x'\"&#?<img src=x onerror=alert(1)> {'n' * 150}"
    shutil.copytree(folder.path, named)
    other = folder.path.rename(runs / f"{HOSTILE.replace('/', '')}")
    pages = [
        client.get("/"),
        client.get(f"/at/{quote(other.name)}"),
        client.get(f"/at/{quote(named.name)}"),
        client.get("/compare", params={"with": [other.name, named.name]}),
        client.get(f"/at/{quote(HOSTILE, safe='')}"),
        client.get("/compare", params={"with": [HOSTILE, HOSTILE * 2]}),
    ]
    assert [page.status_code for page in pages] == [200, 200, 200, 200, 404, 404]
    for page in pages:
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
    assert "another\nkind" not in pages[0].text
    assert "&lt;script&gt;alert" in pages[1].text


@pytest.mark.parametrize(
    "path",
    [
        *("/at/%2e%2e", "/at/%2e%2e/%2e%2e/etc", "/at/..%2f..%2fetc", "/at/%2fetc"),
        *("/at/.", "/at//", "/at/a/b/c", "/at/x%00", f"/at/{'n' * 5000}", "/at/outside"),
        *("/at/.hidden", "/at/x/spec.json", "/at/x%2f..%2fx"),
        *("/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/nothing", "/live?of=..%2f.."),
    ],
)
def test_nothing_outside_has_a_page(
    client: TestClient, runs: Path, tmp_path: Path, path: str
) -> None:
    folder = a_run(tmp_path / "elsewhere", "x").path
    shutil.copytree(folder, runs / "x")
    shutil.copytree(folder, runs / ".hidden")
    (runs / "outside").symlink_to(folder)
    assert client.get(path).status_code == 404


def test_links_in_a_folder_are_not_followed(client: TestClient, runs: Path, tmp_path: Path) -> None:
    folder = a_run(runs, "x").path
    elsewhere = tmp_path / "secret.json"
    (folder / "spec.json").rename(elsewhere)
    (folder / "spec.json").symlink_to(elsewhere)
    assert "is a link" in client.get("/").text
    answer = client.get(f"/at/{folder.name}")
    assert answer.status_code == 503
    assert "is a link" in answer.text
    other = a_run(runs, "y")
    both = client.get("/compare", params={"with": [folder.name, other.name]})
    assert "is a link" in both.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("spec.json", "{"),
        ("spec.json", '{"spec": {"strategy": "of-tomorrow"}}'),
        ("roles.json", "[]"),
        ("roles.json", ""),
        ("events.jsonl", '{"other": 1}\n'),
        ("scores.jsonl", "not json\n"),
        ("steps/worker-0.steps", "of another program"),
        ("resources.jsonl", '{"time": "noon"}\n'),
    ],
)
def test_a_damaged_run_is_told_in_a_sentence(
    client: TestClient, runs: Path, name: str, content: str
) -> None:
    folder, good = a_run(runs, "bad").path, a_run(runs, "good")
    (folder / name).write_text(content)
    assert good.name in client.get("/").text
    answer = client.get(f"/at/{folder.name}")
    assert answer.status_code == 503
    assert 'class="said"' in answer.text
    pair = {"with": [folder.name, good.name]}
    assert client.get("/compare", params=pair).status_code == 503


def test_a_torn_last_line_and_row_do_no_harm(client: TestClient, runs: Path) -> None:
    folder = a_run(runs).path
    for name in ("events.jsonl", "scores.jsonl", "steps/worker-0.steps"):
        with (folder / name).open("ab") as file:
            file.write(b'{"to')
    assert client.get(f"/at/{folder.name}").status_code == 200


def test_a_run_that_has_only_begun(client: TestClient, runs: Path) -> None:
    from paceline.spec import RunSpec

    folder = RunFolder.create(runs, RunSpec())
    page = client.get(f"/at/{folder.name}").text
    assert "starting" in page
    assert "Stop this run" in page


def test_a_folder_that_is_removed_while_it_is_shown(client: TestClient, runs: Path) -> None:
    folder = a_run(runs).path
    assert client.get(f"/at/{folder.name}").status_code == 200
    shutil.rmtree(folder)
    assert client.get(f"/at/{folder.name}").status_code == 404
    assert folder.name not in client.get("/").text


def test_a_folder_of_runs_that_is_none(client: TestClient, runs: Path) -> None:
    runs.write_text("a file")
    assert "cannot read" in client.get("/").text


# What is read again, and what is not.


def test_the_index_reads_only_what_has_changed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [a_run(runs, f"run-{n}") for n in range(3)]
    index = Index(runs)
    index.entries()
    read: list[str] = []
    from paceline.store.listing import run_entry

    def reads(path: Path) -> object:
        read.append(path.name)
        return run_entry(path)

    monkeypatch.setattr("paceline.web.index.run_entry", reads)
    index.entries()
    assert read == []
    folders[1].write_live("failed", os.getpid(), [])
    states = {entry.name: entry.state for entry in index.entries()}
    assert read == [folders[1].name]
    assert states[folders[1].name] == "failed"


def test_a_live_row_follows_its_run(runs: Path) -> None:
    folder = a_run(runs, "x", state="running")
    page = ListPage(Index(runs))
    before = page()[f"run:{folder.name}"]
    assert page()[f"run:{folder.name}"] is before
    assert now(folder).samples_per_second == pytest.approx(12_800, rel=0.01)
    take_steps(folder, "worker-0", 200, 400)  # the other stands still
    assert page()[f"run:{folder.name}"] != before
    assert now(folder).samples_per_second == pytest.approx(6_400, rel=0.01)


def test_a_run_page_tells_soon_what_is_cheap_and_the_rest_at_its_pace(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_run(runs, "x", state="running")
    page = RunPage(folder.path, folder.name)
    first = dict(page())
    assert page() == first
    take_steps(folder, "worker-0", 200, 50)
    happened(folder, "of a cause")
    second = dict(page())
    changed = {name for name in second if second[name] != first[name]}
    assert changed == {"state", "events"}
    folder.write_live("done", os.getpid(), [])
    last = page()
    assert last["figures"] != first["figures"]
    assert "Stop this run" not in last["state"]
