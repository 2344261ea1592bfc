"""Parts of one scoring by several workers add up to one score, exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.launch.scores import ScoreBook


def message(
    total: int, count: int, right: float, step: int = 5, epoch: int = 1, final: bool = False
) -> dict[str, Any]:
    return {
        "time": 1.0 + count,
        "step": step,
        "epoch": epoch,
        "total": total,
        "final": final,
        "sums": {"accuracy": right, "loss": 2.0 * count},
        "count": count,
    }


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=6))
def test_parts_add_up(parts: list[tuple[int, int]]) -> None:
    book = ScoreBook()
    total = sum(count for count, _ in parts)
    scores = [
        book.add(f"worker-{index}", message(total, count, min(right, count)))
        for index, (count, right) in enumerate(parts)
    ]
    assert scores[:-1] == [None] * (len(parts) - 1)
    whole = scores[-1]
    assert whole is not None
    assert whole.count == total
    assert whole.values["accuracy"] == pytest.approx(
        sum(min(right, count) for count, right in parts) / total
    )
    assert whole.values["loss"] == pytest.approx(2.0)
    assert whole.time == max(1.0 + count for count, _ in parts)


def test_a_score_of_one_keeps_its_role_and_one_of_many_has_none() -> None:
    book = ScoreBook()
    alone = book.add("evaluator", message(10, 10, 5))
    assert alone is not None
    assert alone.role == "evaluator"
    assert book.add("worker-0", message(20, 10, 5)) is None
    together = book.add("worker-1", message(20, 10, 5))
    assert together is not None
    assert together.role == ""


def test_scorings_of_different_epochs_are_kept_apart() -> None:
    book = ScoreBook()
    assert book.add("worker-0", message(20, 10, 10, epoch=5)) is None
    assert book.add("worker-0", message(20, 10, 0, epoch=9)) is None
    first = book.add("worker-1", message(20, 10, 10, epoch=5))
    second = book.add("worker-1", message(20, 10, 0, epoch=9))
    assert first is not None
    assert second is not None
    assert (first.values["accuracy"], second.values["accuracy"]) == (1.0, 0.0)


def test_the_final_scoring_is_one_whatever_steps_its_workers_took() -> None:
    book = ScoreBook()
    assert book.add("worker-0", message(20, 10, 4, step=5, final=True)) is None
    whole = book.add("worker-1", message(20, 10, 6, step=9, final=True))
    assert whole is not None
    assert whole.final
    assert whole.step == 9
    assert whole.values["accuracy"] == 0.5


def test_no_test_samples_at_all_divide_by_nothing() -> None:
    score = ScoreBook().add("worker-0", {**message(0, 0, 0), "sums": {}})
    assert score is not None
    assert score.values == {}
