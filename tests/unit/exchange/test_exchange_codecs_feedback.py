"""Error feedback: nothing is lost for good, and training ends where it would have."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paceline.exchange.codecs.feedback import Feedback
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.codecs.rows import ROW

LOSSY = ["bf16", "fp16", "int8", "topk:0.01", "topk:0.3", "onebit"]


def send(feedback: Feedback, gradient: Tensor, block: int) -> Tensor:
    """What a server gets of a gradient that is sent in blocks."""
    got = torch.empty(len(gradient))
    for start in range(0, len(gradient), block):
        at = slice(start, min(start + block, len(gradient)))
        data = torch.empty(feedback.codec.room(at.stop - at.start), dtype=torch.uint8)
        used = feedback.encode(gradient[at], at, data)
        feedback.codec.decode(data[:used], got[at])
    return got


def owed(feedback: Feedback, size: int) -> Tensor:
    """What a worker still owes: all that pushes of nothing would bring, were they exact."""
    assert feedback.owed is not None
    return feedback.owed[:size]


@settings(deadline=None)
@given(
    text=st.sampled_from(LOSSY),
    size=st.integers(1, 2 * ROW + 100),
    block=st.sampled_from([7, 100, ROW, 2 * ROW]),
    steps=st.integers(1, 6),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_what_was_sent_and_what_is_owed_make_up_the_gradients(
    text: str, size: int, block: int, steps: int, scale: float, seed: int
) -> None:
    make = torch.Generator().manual_seed(seed)
    feedback = Feedback(make_codec(text), size)
    gradients, sent = torch.zeros(size, dtype=torch.double), torch.zeros(size, dtype=torch.double)
    for _ in range(steps):
        gradient = torch.randn(size, generator=make) * scale
        before = gradient.clone()
        sent += send(feedback, gradient, block)
        gradients += gradient
        assert torch.equal(gradient, before)
    torch.testing.assert_close(
        sent + owed(feedback, size), gradients, rtol=0, atol=scale * steps * 1e-5
    )


def test_without_loss_nothing_is_kept() -> None:
    feedback = Feedback(make_codec("none"), 5)
    assert feedback.owed is None
    gradient = torch.tensor([1.0, -2.0, math.pi, 0.0, 1e-30])
    assert torch.equal(send(feedback, gradient, 5), gradient)
    assert (feedback.error, feedback.ratio) == (0.0, 1.0)


@pytest.mark.parametrize("text", LOSSY)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_is_seen_once(text: str, bad: float) -> None:
    size = ROW + 10
    make = torch.Generator().manual_seed(1)
    feedback = Feedback(make_codec(text), size)
    send(feedback, torch.randn(size, generator=make), size)
    known = feedback.error
    spoiled = torch.randn(size, generator=make)
    spoiled[3] = bad
    assert not send(feedback, spoiled, size)[3].isfinite()
    assert owed(feedback, size).isfinite().all()
    assert owed(feedback, size)[3] == 0
    assert feedback.error == known
    assert send(feedback, torch.randn(size, generator=make), size).isfinite().all()


@pytest.mark.parametrize("text", LOSSY)
def test_gradients_beyond_all_measure_are_owed_as_any_other(text: str) -> None:
    """Their squares overflow; they themselves do not."""
    gradient = torch.tensor([1e30, -3e29, 5e28, 0.0])
    feedback = Feedback(make_codec(text), 4)
    got = send(feedback, gradient, 4)
    torch.testing.assert_close(got + owed(feedback, 4), gradient)
    assert math.isfinite(feedback.error)


def test_what_fp16_cannot_hold_comes_later() -> None:
    feedback = Feedback(make_codec("fp16"), 2)
    pushes = [torch.tensor([100_000.0, 1.0]), torch.zeros(2), torch.zeros(2)]
    got = torch.stack([send(feedback, push, 2) for push in pushes])
    torch.testing.assert_close(got.sum(0), torch.tensor([100_000.0, 1.0]))


def test_error_and_ratio_are_those_of_all_blocks_so_far() -> None:
    feedback = Feedback(make_codec("topk:0.5"), 4)
    assert (feedback.error, feedback.ratio) == (0.0, 1.0)
    send(feedback, torch.tensor([3.0, 0.0, 4.0, 0.0]), 4)
    assert (feedback.error, feedback.ratio) == (0.0, 1.0)  # 16 bytes as 2 places and 2 values
    send(feedback, torch.tensor([4.0, 2.0, 4.0, -1.0]), 4)
    assert feedback.error == pytest.approx(math.sqrt(5 / (25 + 37)))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """On such small matrices threads would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def descend(text: str, steps: int = 400) -> float:
    """Loss of ridge regression after plain SGD by two workers, one of which has most samples."""
    make = torch.Generator().manual_seed(0)
    size = 300
    features = torch.randn(600, size, generator=make) * torch.logspace(0, -1, size)
    truth = torch.randn(size, generator=make)
    labels = features @ truth + 0.1 * torch.randn(600, generator=make)
    parts = [slice(0, 450), slice(450, 600)]
    workers = [Feedback(make_codec(text), size) for _ in parts]
    weights = torch.zeros(size)
    for _ in range(steps):
        grads = []
        for part, feedback in zip(parts, workers, strict=True):
            picked = torch.randint(part.start, part.stop, (150,), generator=make)
            x, y = features[picked], labels[picked]
            grads.append(send(feedback, x.T @ (x @ weights - y) / 150 + 1e-3 * weights, 128))
        weights -= 0.05 * torch.stack(grads).mean(0)
    return float(((features @ weights - labels) ** 2).mean() + 1e-3 * weights.square().sum())


@pytest.mark.matrix(2)
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("text", ["bf16", "fp16", "int8", "topk:0.1", "onebit"])
def test_training_ends_where_plain_gradients_end(text: str) -> None:
    first, plain = descend("none", steps=0), descend("none")
    assert plain < 0.05 * first
    assert descend(text) == pytest.approx(plain, rel=0.1)
