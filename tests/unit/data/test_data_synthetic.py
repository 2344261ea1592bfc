from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.open import open_data, preflight
from paceline.data.shape import Shape, parse_shape
from paceline.errors import DataError

sizes = st.integers(1, 40)


@given(st.integers(1, 10**5), st.lists(sizes, min_size=1, max_size=3), st.integers(2, 1000))
def test_what_is_written_is_read(samples: int, dims: list[int], classes: int) -> None:
    text = "x".join(map(str, [samples, *dims]))
    assert parse_shape(text) == Shape(samples=samples, dims=tuple(dims), classes=10)
    expected = Shape(samples=samples, dims=tuple(dims), classes=classes)
    assert parse_shape(f"{text}:{classes}") == expected


def test_nothing_means_the_default() -> None:
    assert parse_shape("") == Shape(samples=10_000, dims=(784,), classes=10)


@given(st.text(alphabet="0123456789x:- .٣", max_size=24) | st.text(max_size=10))
def test_anything_is_a_shape_or_one_sentence_with_an_example(text: str) -> None:
    told = ""
    try:
        shape = parse_shape(text)
    except DataError as wrong:
        shape, told = Shape(), str(wrong)
    assert not told or told.endswith("; for example synthetic:5000x20:3.")
    assert min(shape.samples, *shape.dims) >= 1
    assert shape.classes >= 2


@pytest.mark.parametrize(
    "text",
    ["5", "x5", "5x", "0x5", "5x0", "5x5:", "5x5:1", "5x5:0", "5x5:-3", "5X5", " 5x5", "5x5\n",
     "5x5:2:2", "1000000x1000000", "2x999999999999", "9" * 5000 + "x2", "10x20000:100000"],
)  # fmt: skip
def test_faulty_shapes_are_refused(text: str) -> None:
    with pytest.raises(DataError):
        parse_shape(text)


@pytest.mark.parametrize("dims", [(7,), (1, 28, 28), (3, 5, 4, 2)])
def test_any_shape_is_made(dims: tuple[int, ...]) -> None:
    name = f"synthetic:65x{'x'.join(map(str, dims))}:4"
    data = open_data(name)
    assert (len(data.train), len(data.test)) == (65, 10)
    assert (data.shape, data.classes) == (dims, 4)
    assert preflight(name) == 65
    x, y = data.train.batch(np.arange(65))
    assert x.shape == (65, *dims)
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)
    assert x.min() >= -1
    assert x.max() < 1
    assert set(y.tolist()) == {0, 1, 2, 3}


def content(name: str, seed: int) -> str:
    data = open_data(name, seed=seed)
    digest = hashlib.sha256()
    for part in (data.train, data.test):
        for column in part.batch(np.arange(len(part))):
            digest.update(column.numpy().tobytes())
    return digest.hexdigest()[:16]


def test_the_same_data_on_every_machine() -> None:
    assert content("synthetic:600x20:3", seed=7) == "3ea9d52f6af6e52e"


def test_seed_and_shape_decide_the_data() -> None:
    names = ("synthetic:600x20:3", "synthetic:600x4x5:3", "synthetic:600x20:4")
    seen = {content(name, seed) for name in names for seed in (0, 1)}
    assert len(seen) == 6


@pytest.mark.parametrize("shape", ["3000x784:10", "3000x20:3", "600x2:2"])
def test_it_can_be_learned_and_holds_on_unseen_samples(shape: str) -> None:
    data = open_data(f"synthetic:{shape}")
    x, y = (t.numpy() for t in data.train.batch(np.arange(len(data.train))))
    means = np.stack([x[y == c].mean(0) for c in range(data.classes)])
    x, y = (t.numpy() for t in data.test.batch(np.arange(len(data.test))))
    nearest = ((x[:, None] - means) ** 2).sum(2).argmin(1)
    assert (nearest == y).mean() > 0.85
