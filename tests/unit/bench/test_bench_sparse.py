"""What bench.sparse makes of its rows, and tells of what it measured."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from bench.catalog import SPARSE
from bench.clicks.rows import count, counts_of, log_loss, read, write_texts
from bench.clicks.table import Measured, body
from bench.page import section
from bench.sparse import OURS, PEERS
from paceline.data import clicks
from paceline.data.sparse.delimited import CRITEO, Delimited
from paceline.data.sparse.hashing import rounded
from paceline.spec import RunSpec

FEATURES = 4000


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    clicks.check(f"200x{FEATURES}", str(tmp_path), 0)
    return tmp_path / "clicks" / f"200x{FEATURES}-0"


def test_places_are_told_apart_by_their_leading_digits() -> None:
    counts = [count(place) for place in range(200)]
    assert counts == sorted(set(counts))
    assert [rounded(one) for one in counts] == counts


def test_texts_say_what_the_shards_do(shards: Path, tmp_path: Path) -> None:
    write_texts(shards, tmp_path / "texts")
    rows = read(shards, "train")
    text = np.fromfile(tmp_path / "texts" / "train.criteo", np.uint8)
    found = Delimited(CRITEO, "\t", 1 << 30, quotes=False)(text)
    assert found.bad == 0
    assert found.labels.tolist() == rows.labels.tolist()
    # The same feature wherever it was the same, and another wherever it was another.
    pairs = set(zip(rows.ids.reshape(-1).tolist(), found.ids.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    lines = (tmp_path / "texts" / "test.vw").read_text().splitlines()
    test = read(shards, "test")
    assert [line.split(" | ")[0] for line in lines] == [
        str(2 * y - 1) for y in test.labels.tolist()
    ]
    assert [int(i) for i in lines[0].split()[2:]] == test.ids[0].tolist()
    assert len(counts_of(rows)) <= 13 * 40


def test_log_loss_of_a_guess() -> None:
    assert log_loss(np.zeros(4), np.array([0, 1, 1, 0], np.uint8)) == pytest.approx(np.log(2))


def test_contenders_can_run() -> None:
    for how in OURS.values():
        RunSpec(task="sparse-logreg", **how)
    for module, *_ in PEERS.values():
        assert Path(f"{module.replace('.', '/')}.py").name in {
            path.name for path in Path(sys.modules["bench.clicks"].__path__[0]).iterdir()
        }


def test_what_is_told() -> None:
    def all_(rate: float, loss: float) -> list[dict[str, float]]:
        return [Measured(int(rate), 1.0, loss, 100.0)._asdict() for _ in range(5)]

    record = {
        "machine": {
            "date": "2026-11-17",
            "host": {"cores": 2, "cpu": "A Processor", "memory_bytes": 24 << 30},
            "versions": {"python": "3.11.7"},
        },
        "repeats": 5,
        "floor": 0.4567,
        "speed": {
            "scikit-learn": all_(100, 0.5),
            "Vowpal Wabbit": all_(10, 0.5),
            "hogwild, 1 worker": all_(110, 0.49),
            "hogwild, 2 workers": all_(240, 0.49),
            "hogwild from text": all_(60, 0.49),
        },
        "quality": {"single": 0.5, "hogwild shm, 2 workers": 0.503},
        "wire": {
            "features": FEATURES,
            "batch": 1000,
            "rows": 100.0,
            "sparse": {"sent": 900.0, "received": 500.0, "seconds": 0.01},
            "dense": {"sent": 80_000.0, "received": 80_000.0, "seconds": 0.4},
        },
        "reviews": {
            "rows": {"train": 10, "test": 5},
            "features": 7,
            "accuracy": 0.9,
            "auc": 0.95,
            "train_seconds": 3.0,
            "seconds": 8.0,
            "conversion_seconds": 1.0,
        },
    }
    text = "\n".join(section(SPARSE, record))
    assert "`make bench-sparse`, 5 interleaved repeats." in text
    assert "| hogwild, 1 worker: 1.0x scikit-learn | 1.10 (1.10 – 1.10) | met |" in text
    assert "| hogwild, 2 workers: 2.5x scikit-learn | 2.40 (2.40 – 2.40) | not met |" in text
    assert "| hogwild from text: 5.0x Vowpal Wabbit | 6.00 (6.00 – 6.00) | met |" in text
    assert "0.4900 beside 0.5000 | met |" in text
    assert "| log loss of others within 0.5 % of `single` | 0.60 % | not met |" in text
    assert "| bytes each way: at most 1.3x the rows in use | 1.12 | met |" in text
    assert "| seconds a step: 50x fewer than dense | 40 | not met |" in text
    assert "| reviews: 89.5 % | 90.00 % | met |" in text
    assert body({"floor": 0.5}) == []
