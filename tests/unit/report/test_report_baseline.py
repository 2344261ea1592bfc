from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from paceline.report.baseline import comparable_single
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder


def record(root: Path, state: str = "done", **fields: Any) -> RunFolder:
    folder = RunFolder.create(root, RunSpec(**{"lr": 0.5, "batch": 200, **fields}))
    folder.write_live(state, os.getpid(), [])
    folder.write_result({"run": folder.name, "throughput": {"samples_per_second": 7.0}})
    return folder


def test_the_newest_single_run_of_the_same_work_is_found(tmp_path: Path) -> None:
    record(tmp_path)
    newest = record(tmp_path)
    base = comparable_single(record(tmp_path, strategy="ps-sync", workers=2), tmp_path)
    assert base is not None
    assert base["run"] == newest.name


@pytest.mark.parametrize(
    "other",
    [
        *({"lr": 0.1}, {"batch": 64}, {"optimizer": "adam"}, {"task": "lenet"}),
        *({"state": "failed"}, {"inject": ["slow:worker-0x2"]}),
    ],
    ids=str,
)
def test_a_run_of_other_work_or_without_an_end_is_not_comparable(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    record(tmp_path, **other)
    assert comparable_single(record(tmp_path, strategy="ps-sync", workers=2), tmp_path) is None


def test_a_run_on_another_host_is_not_comparable(tmp_path: Path) -> None:
    single = record(tmp_path)
    about = single.read_spec()
    about["host"]["name"] = "elsewhere"
    (single.path / "spec.json").write_text(json.dumps(about))
    assert comparable_single(record(tmp_path, strategy="ps-sync", workers=2), tmp_path) is None


def test_a_single_run_is_not_held_against_another(tmp_path: Path) -> None:
    record(tmp_path)
    assert comparable_single(record(tmp_path), tmp_path) is None
