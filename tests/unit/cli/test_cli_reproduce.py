from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import RoleDied

CELLS = [(batch, workers) for batch in (64, 128, 256, 512) for workers in (1, 2, 3)]


def cells(specs: list[Any]) -> list[tuple[int, int]]:
    return [(spec.batch, spec.workers) for spec in specs]


def test_every_cell_is_trained_with_default_settings(
    paceline: Callable[..., Any], api: Any
) -> None:
    told = paceline("reproduce", "lenet-2019")
    assert told.code == 0
    assert cells(api.specs) == CELLS
    assert {spec.strategy for spec in api.specs if spec.workers > 1} == {"ps-sync"}
    open_ = {(s.task, s.data, s.epochs, s.lr, s.scale_lr, s.warmup, s.decay) for s in api.specs}
    assert open_ == {("lenet", "mnist", 6, None, "auto", None, "auto")}
    row = next(line.split() for line in told.out.splitlines() if line.split()[:2] == ["512", "3"])
    assert row == ["512", "3", "92.31", "84.01", "2.1", "212.1"]
    assert "Course report, 2019" in told.out.replace("\n", " ")
    assert "12 of 12: batch 512, 3 workers, about" in told.err
    assert max(map(len, told.out.splitlines())) <= 80


def test_it_goes_on_where_it_broke_off(paceline: Callable[..., Any], api: Any) -> None:
    api.status = "stopped"
    stopped = paceline("reproduce", "lenet-2019")
    assert (stopped.code, stopped.out, len(api.specs)) == (130, "", 1)
    assert "the same command goes on" in stopped.err
    api.status = "done"
    paceline("run", "--task", "lenet", "--data", "mnist", "--batch", "128", "--epochs", "6")
    api.specs.clear()
    told = paceline("reproduce", "lenet-2019")
    assert cells(api.specs) == [cell for cell in CELLS if cell != (128, 1)]
    assert "found 1 finished cell in" in told.err
    assert len(json.loads(paceline("reproduce", "lenet-2019", "--json").out)["cells"]) == 12
    assert len(api.specs) == 11
    paceline("reproduce", "lenet-2019", "--seed", "1")
    assert len(api.specs) == 23


def test_a_cell_that_fails_is_shown_and_the_rest_goes_on(
    paceline: Callable[..., Any], api: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails_once(spec: Any, **asked: Any) -> Any:
        if (spec.batch, spec.workers) == (256, 2):
            raise RoleDied("worker-1", "was killed by SIGKILL.")
        return api.execute(spec, **asked)

    monkeypatch.setattr("paceline.api.execute", fails_once)
    page = tmp_path / "page.md"
    told = paceline("reproduce", "lenet-2019", "--md", str(page))
    assert told.code == 1
    assert "failed: worker-1 was killed by SIGKILL." in told.err
    assert ["256", "2", "failed", "93.39", "–", "191.6"] in map(str.split, told.out.splitlines())
    assert "1 of 12 cells failed." in told.out.replace("\n", " ")
    assert "- batch 256, 2 workers: worker-1 was killed by SIGKILL." in page.read_text()


def test_the_table_is_written_as_it_is_asked_for(
    paceline: Callable[..., Any], api: Any, tmp_path: Path
) -> None:
    page, sheet = tmp_path / "lenet.md", tmp_path / "lenet.csv"
    flags = ("--json", "--md", str(page), "--csv", str(sheet), "--epochs", "1")
    told = json.loads(paceline("reproduce", "lenet-2019", *flags).out)
    assert told["name"] == "lenet-2019"
    last = told["cells"][-1]
    assert (last["batch"], last["workers"], last["accuracy"], last["seconds"]) == (
        512,
        3,
        0.9231,
        2.1,
    )
    assert last["published"] == {"accuracy": 0.8401, "seconds": 212.09}
    assert "92.31 %" in told["sentence"]
    assert "| 512 | 3 | 92.31 | 84.01 | 2.1 | 212.1 |" in page.read_text()
    assert page.read_text().startswith("# LeNet on MNIST, 1 epoch: ours, and 2019\n")
    with sheet.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 12
    assert (rows[0]["batch"], rows[0]["published_accuracy"], rows[0]["fault"]) == ("64", "0.98", "")


def test_a_table_nobody_published_is_refused_with_the_known_ones(
    paceline: Callable[..., Any], api: Any
) -> None:
    told = paceline("reproduce", "lenet-2018")
    assert (told.code, api.specs) == (2, [])
    assert "did you mean 'lenet-2019'?" in told.err


def test_a_file_that_cannot_be_written_is_told_before_anything_is_trained(
    paceline: Callable[..., Any], api: Any
) -> None:
    told = paceline("reproduce", "lenet-2019", "--csv", "nowhere/lenet.csv")
    assert (told.code, api.specs) == (2, [])
    assert "there is no folder 'nowhere'" in told.err
