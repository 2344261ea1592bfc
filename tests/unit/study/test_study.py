"""What a study is made of: cells, baselines, order, and what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import RequestError, SpecError
from paceline.study.cells import plan
from paceline.study.order import blocks
from paceline.study.read import read_study, ready_names, ready_study, with_fields
from paceline.study.study import Study, study_of


def names(study: Study) -> list[str]:
    return [cell.name for cell in plan(study).cells]


@given(cells=st.integers(1, 12), repeats=st.integers(1, 8), seed=st.integers(0, 99))
def test_every_block_has_every_cell_once_and_blocks_stay_as_more_are_asked_for(
    cells: int, repeats: int, seed: int
) -> None:
    order = blocks(cells, repeats, seed)
    assert [repeat for repeat, _ in order] == sorted(list(range(repeats)) * cells)
    assert Counter(order) == Counter((r, c) for r in range(repeats) for c in range(cells))
    assert blocks(cells, repeats + 1, seed)[: len(order)] == order


def test_each_cell_is_as_often_first_as_any_other() -> None:
    first = Counter(cell for i, (_, cell) in enumerate(blocks(4, 2000, 7)) if i % 4 == 0)
    assert min(first.values()) > 400


def test_ready_made_studies_have_no_faults() -> None:
    assert ready_names() == ["batch", "codecs", "strategies", "strong", "weak"]
    for name in ready_names():
        found = plan(ready_study(name))
        assert not found.faults
        assert len(found.cells) > 2
        assert ready_study(name).question.endswith("?")


def test_a_strong_study_has_one_cell_with_one_worker_for_all_strategies() -> None:
    study = with_fields(
        ready_study("strong"),
        {"task": "lenet", "strategy": ("allreduce", "ps-sync", "single"), "workers": (1, 2, 4)},
    )
    found = plan(study)
    assert [cell.name for cell in found.cells] == [
        "single",
        *("allreduce, 2 workers", "allreduce, 4 workers"),
        *("ps-sync, 2 workers", "ps-sync, 4 workers"),
    ]
    assert {cell.base for cell in found.cells} == {"single"}
    assert {cell.spec.epochs for cell in found.cells} == {2}
    assert {cell.spec.checkpoint_every for cell in found.cells} == {0}


def test_a_baseline_shares_all_but_what_makes_it_one_and_what_it_has_no_use_for() -> None:
    study = with_fields(
        ready_study("strong"),
        {
            "strategy": "ps-sync",
            "workers": 2,
            "batch": (32, 64),
            "transport": "tcp",
            "codec": "int8",
            "inject": ["slow:worker-1x2"],
        },
    )
    found = {cell.name: cell for cell in plan(study).cells}
    assert found["ps-sync, 2 workers, batch 64"].base == "single, batch 64"
    base, own = found["single, batch 64"].spec, found["ps-sync, 2 workers, batch 64"].spec
    assert (base.codec, base.transport, base.inject, base.batch) == ("none", "auto", (), 64)
    assert (own.codec, own.transport, own.inject) == ("int8", "tcp", ("slow:worker-1x2",))


def test_one_cell_and_its_baseline_are_a_study() -> None:
    assert names(with_fields(ready_study("strong"), {"strategy": "ps-sync", "workers": 2})) == [
        "single",
        "ps-sync, 2 workers",
    ]


def test_weak_work_grows_with_the_workers_and_a_global_batch_is_shared() -> None:
    weak = with_fields(ready_study("weak"), {"strategy": "ps-sync", "workers": (1, 3)})
    assert [cell.spec.epochs for cell in plan(weak).cells] == [1, 3]
    steps = with_fields(weak, {"steps": 50})
    assert {(cell.spec.epochs, cell.spec.steps) for cell in plan(steps).cells} == {(None, 50)}
    shared = Study(
        run={"batch": 96, "strategy": "ps-sync"}, vary={"workers": (1, 3)}, hold="global-batch"
    )
    assert [cell.spec.batch for cell in plan(shared).cells] == [96, 32]
    assert "5 workers cannot share it" in str(plan(with_fields(shared, {"workers": (5,)})).faults)
    assert "with --batch" in str(plan(Study(vary={"seed": (1,)}, hold="global-batch")).faults)


def test_repeats_have_seeds_of_their_own_alike_in_all_cells_unless_seeds_are_compared() -> None:
    cells = plan(Study(run={"seed": 5}, vary={"batch": (8, 9)})).cells
    assert [[cell.repeat(r).seed for r in range(3)] for cell in cells] == [[5, 6, 7]] * 2
    seeds = plan(Study(vary={"seed": (1, 2)})).cells
    assert [cell.repeat(2).seed for cell in seeds] == [1, 2]


def test_a_value_may_set_several_fields_at_once() -> None:
    shapes = ({"workers": 2, "servers": 1}, {"workers": 1, "servers": 2})
    study = Study(run={"strategy": "ps-sync"}, vary={"shape": shapes, "batch": (8, 16)})
    assert names(study) == [
        "2 workers, 1 server, batch 8",
        "2 workers, 1 server, batch 16",
        "1 worker, 2 servers, batch 8",
        "1 worker, 2 servers, batch 16",
    ]
    assert names(with_fields(study, {"batch": 8})) == [
        "2 workers, 1 server",
        "1 worker, 2 servers",
    ]


def test_every_fault_of_every_cell_is_told_and_one_that_all_have_once() -> None:
    wrong = Study(run={"lr": -1.0}, vary={"strategy": ("single", "ps-sync"), "workers": (1, 2)})
    found = plan(wrong)
    assert not found.cells
    with pytest.raises(SpecError) as told:
        found.insist()
    assert told.value.faults == (
        "--lr -1.0: must be more than 0.0.",
        "single, 2 workers: --workers 2: strategy 'single' has one worker; "
        "choose another strategy or --workers 1.",
    )
    some = plan(with_fields(wrong, {"lr": 1.0}))
    assert (len(some.cells), list(some.faults)) == (3, ["single, 2 workers"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("repeats = 2.5", "repeats = 2.5: must be a whole number"),
        ("vary = 3", "'vary' must be a table"),
        ("[vary]\nworkers = 2", "[vary] workers: must be a list of values"),
        ("[vary]\nworkers = []", "'workers' varies over nothing"),
        ("repeat = 2", "did you mean 'repeats'?"),
        ("work = 'all'", "must be one of total, per-worker"),
        ("target = 0.9", "must be a table such as { accuracy = 0.97 }"),
        ("target = { f1 = 0.9 }", "must be one of accuracy, loss"),
        ("= 2", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(RequestError) as told:
        read_study(tmp_path / "study.toml")
    assert fault in str(told.value)


def test_a_study_is_the_same_after_a_trip_through_json(tmp_path: Path) -> None:
    text = """
    question = "Which?"
    target = { loss = 0.5 }
    [run]
    data-dir = "x"
    [vary]
    shape = [{ workers = 1 }, { workers = 2 }]
    [baseline]
    strategy = "single"
    """
    (tmp_path / "mine.toml").write_text(text)
    study = read_study(tmp_path / "mine.toml")
    assert (study.name, study.target, study.run) == ("mine", ("loss", 0.5), {"data_dir": "x"})
    again: Any = json.loads(json.dumps(study.as_object()))
    assert again == study.as_object()
    assert study_of(again) == study
