"""`paceline sweep`, and what `show`, `runs`, `compare` and `cost` make of what it leaves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import Interrupted, RoleDied
from paceline.store.sweeps import SweepFolder

STRONG = ("sweep", "--study", "strong", "--task", "lenet", "--strategy", "allreduce,ps-sync")


def only_sweep(root: Path) -> SweepFolder:
    return SweepFolder.find(root / "runs", "last")


def test_every_cell_is_run_in_blocks_and_the_answer_is_told(
    paceline: Callable[..., Any], api: Any, tmp_path: Path
) -> None:
    told = paceline(*STRONG, "--workers", "1,2", "--repeats", "3")
    assert told.code == 0
    kinds = [(spec.strategy, spec.workers) for spec in api.specs]
    blocks = [kinds[i : i + 3] for i in (0, 3, 6)]
    assert all(set(block) == {("single", 1), ("allreduce", 2), ("ps-sync", 2)} for block in blocks)
    assert [spec.seed for spec in api.specs] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    folder = only_sweep(tmp_path)
    assert api.asked["out"] == folder.runs
    assert folder.state == "done"
    assert "9 of 9: " in told.err
    assert " left" in told.err
    words = told.out.replace("\n", " ")
    assert "a second worker makes it 1.41 times as fast (1.41–1.41)" in words
    assert max(map(len, told.out.splitlines())) <= 80


def test_its_object_has_every_figure_with_its_interval(
    paceline: Callable[..., Any], api: Any
) -> None:
    summary = json.loads(paceline(*STRONG, "--repeats", "2", "--json").out)
    assert summary["trials"] | {"seconds": 0} == {"done": 6, "failed": 0, "left": 0, "seconds": 0}
    base, other, *_ = summary["cells"]
    assert (base["cell"], base["gain"], other["base"]) == ("single", None, "single")
    gain = other["gain"]["throughput"]
    assert gain["value"] == pytest.approx(2**0.5)
    assert gain["low"] == pytest.approx(gain["high"])
    assert gain["different"] is True
    assert other["throughput"]["samples_per_second"] == pytest.approx(30_000 * 2**0.5)
    assert {trial["repeat"] for trial in other["trials"]} == {0, 1}
    again = json.loads(paceline("show", "last", "--json").out)
    assert again == summary
    listed = json.loads(paceline("runs", "--json").out)
    assert [(entry["kind"], entry["done"], entry["failed"]) for entry in listed] == [
        ("sweep", 6, 0)
    ]


def test_it_goes_on_where_it_was_stopped(
    paceline: Callable[..., Any], api: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped_after(count: int, error: Exception | None) -> None:
        def execute(spec: Any, **asked: Any) -> Any:
            done = len(api.specs) >= count
            api.status = "stopped" if done else "done"
            if done and error:
                raise error
            return api.execute(spec, **asked)

        monkeypatch.setattr("paceline.api.execute", execute)

    stopped_after(2, None)
    told = paceline(*STRONG, "--repeats", "2")
    assert told.code == 130
    assert "paceline sweep --resume" in told.err
    first = only_sweep(tmp_path).trials()
    assert (len(first), only_sweep(tmp_path).state) == (2, "stopped")
    stopped_after(4, Interrupted("at once"))
    assert paceline(*STRONG, "--repeats", "2").code == 130
    assert only_sweep(tmp_path).trials()[:2] == first
    stopped_after(99, None)
    assert paceline("sweep", "--resume", "last").code == 0
    trials = only_sweep(tmp_path).trials()
    assert trials[:2] == first
    assert set(Counter((t.cell, t.repeat) for t in trials).values()) == {1}
    assert len(trials) == 6
    assert only_sweep(tmp_path).name in paceline("show", "last").out.replace("\n", "")
    paceline(*STRONG, "--repeats", "2")  # the same again, once it is done, is another sweep
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_cell_that_fails_is_a_result_and_can_be_tried_again(
    paceline: Callable[..., Any], api: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(spec: Any, **asked: Any) -> Any:
        if spec.strategy == "allreduce" and spec.seed == 1:
            raise RoleDied("worker-1", "was killed by SIGKILL.")
        return api.execute(spec, **asked)

    monkeypatch.setattr("paceline.api.execute", fails)
    told = paceline(*STRONG, "--repeats", "2")
    assert told.code == 1
    assert "failed: worker-1 was killed by SIGKILL." in told.err
    assert "allreduce, 2 workers, repeat 2: worker-1 was killed by" in told.out
    assert "1 of 6 runs failed." in told.out.replace("\n", " ")
    assert len(api.specs) == 5
    monkeypatch.setattr("paceline.api.execute", api.execute)
    assert paceline("sweep", "--resume", "last").code == 1
    assert len(api.specs) == 5
    assert paceline("sweep", "--resume", "last", "--retry-failed").code == 0
    assert len(api.specs) == 6
    assert [trial.fault for trial in only_sweep(tmp_path).trials()] == [""] * 6


def test_all_faults_are_told_before_anything_runs_or_those_cells_are_skipped(
    paceline: Callable[..., Any], api: Any
) -> None:
    flags = ("sweep", "--strategy", "single,ps-sync", "--workers", "1,2", "--repeats", "1")
    told = paceline(*flags)
    assert (told.code, api.specs) == (2, [])
    assert "single, 2 workers: --workers 2: strategy 'single' has one worker" in told.err
    told = paceline(*flags, "--skip-invalid")
    assert (told.code, len(api.specs)) == (0, 3)
    assert "single, 2 workers: skipped: " in told.out
    assert "One repeat does not tell what is noise" in told.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        ((), "nothing varies"),
        (("--study", "strog"), "did you mean 'strong'?"),
        (("--study", "strong", "--repeats", "0"), "--repeats 0: must be from 1"),
        (("--study", "strong", "--hold", "all"), "must be one of batch, global-batch"),
        (("--study", "strong", "--target", "accuracy"), "such as accuracy=0.97"),
        (("--study", "strong", "--target", "f1=0.9"), "must be one of accuracy, loss"),
        (("--study", "strong", "--workers", "1,two"), "--workers 'two': must be a whole number"),
        (("nowhere.toml",), "cannot read study 'nowhere.toml'"),
        (("mine.toml", "--study", "strong"), "not both"),
        (("--resume", "last"), "there is no sweep in"),
        (("--resume", "last", "--epochs", "3"), "only --retry-failed"),
        (("--study", "strong", "--data", "minst"), "did you mean 'mnist'?"),
    ],
)
def test_a_wrong_request_is_a_sentence_and_code_two(
    flags: tuple[str, ...], fault: str, paceline: Callable[..., Any], api: Any
) -> None:
    told = paceline("sweep", *flags)
    assert (told.code, told.out, api.specs) == (2, "", [])
    assert fault in told.err
    assert "Traceback" not in told.err


def test_a_sweep_that_was_begun_elsewhere_does_not_go_on_here(
    paceline: Callable[..., Any], api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.status = "stopped"
    assert paceline(*STRONG).code == 130
    monkeypatch.setattr("platform.node", lambda: "another")
    told = paceline("sweep", "--resume", "last")
    assert told.code == 2
    assert "and this is 'another'; start a new sweep." in told.err


def test_a_study_of_ones_own_from_a_file(
    paceline: Callable[..., Any], api: Any, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('question = "Which batch?"\nrepeats = 1\n[vary]\nbatch = [50, 100]\n')
    told = paceline("sweep", str(file), "--epochs", "1")
    assert told.code == 0
    assert sorted((spec.batch, spec.epochs) for spec in api.specs) == [(50, 1), (100, 1)]
    assert told.out.startswith("Which batch?")


def test_sweeps_and_their_runs_are_compared(
    paceline: Callable[..., Any], api: Any, tmp_path: Path
) -> None:
    paceline(*STRONG, "--repeats", "2")
    paceline(*STRONG, "--repeats", "2", "--fresh", "--epochs", "5")
    root = tmp_path / "runs"
    one, two = sorted(path.name for path in root.iterdir())
    found = json.loads(paceline("compare", one, two, "--json").out)
    assert found["spec"] == {"epochs": {"a": 2, "b": 5}}
    assert [cell["throughput"]["change"]["different"] for cell in found["cells"]] == [False] * 3
    assert "did not take turns" in found["sentence"]
    assert "noise" in paceline("compare", one, two).out

    runs = {trial.cell: trial.run for trial in SweepFolder(root / one).trials()}
    inside = root / one / "runs"
    pair = (inside / str(runs["single"]), inside / str(runs["ps-sync, 2 workers"]))
    found = json.loads(paceline("compare", *map(str, pair), "--json").out)
    assert found["interleaved"] is True
    assert found["cells"][0]["throughput"]["change"]["different"] is True
    assert found["cells"][0]["runs"] == {"a": 2, "b": 2}

    mixed = paceline("compare", one, str(pair[0]))
    assert mixed.code == 2
    assert "compare two of the same kind" in mixed.err


def test_one_run_of_each_does_not_tell_what_is_noise(
    paceline: Callable[..., Any], api: Any
) -> None:
    paceline("run", "--strategy", "single")
    paceline("run", "--strategy", "ps-sync", "--workers", "2")
    told = paceline("compare", "single", "ps-sync")
    assert told.code == 0
    assert "one run of each does not tell" in told.out.replace("\n", " ")
    assert "cannot be told" in told.out


def test_what_a_sweep_costs(paceline: Callable[..., Any], api: Any, tmp_path: Path) -> None:
    paceline(*STRONG, "--repeats", "2")
    refused = paceline("cost", "last")
    assert refused.code == 2
    assert "--machine; known: g3.16xlarge" in refused.err
    flags = ("--machine", "g3.4xlarge", "--workers-per-machine", "1", "--json")
    found = json.loads(paceline("cost", "last", *flags).out)
    single, both, _ = found["choices"]
    assert single["machines"] == {"g3.4xlarge": 1}
    assert both["price_an_hour"] == pytest.approx(2.28)
    assert both["run"]["money"] == pytest.approx(2.28 * 3.4 / 3600)
    book = tmp_path / "own.toml"
    book.write_text('[machine."mine"]\nprice_an_hour = 36\n')
    own = json.loads(
        paceline("cost", "last", "--machine", "mine", "--prices", str(book), "--json").out
    )
    assert own["choices"][0]["run"]["money"] == pytest.approx(0.034)
