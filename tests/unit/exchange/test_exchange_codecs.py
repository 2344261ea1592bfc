"""Every codec there and back: within its error, within its room, the same twice, nothing hidden."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from paceline.errors import RequestError
from paceline.exchange.codecs.base import Codec
from paceline.exchange.codecs.catalog import CODECS
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.codecs.rows import ROW, pieces, row_count
from paceline.exchange.codecs.topk import largest
from paceline.server.rules import CHUNK

TEXTS = ["none", "bf16", "fp16", "int8", "topk:0.01", "topk:0.3", "onebit"]
ROWED = ["int8", "onebit"]
COUNTS = [0, 1, 2, 7, 8, 9, ROW - 1, ROW, ROW + 1, 3 * ROW, CHUNK, CHUNK + ROW + 5]

# Small blocks of any floats, and long ones of a few, so that rows, pieces and ties all occur.
ANY = st.floats(width=32, allow_nan=False, allow_infinity=False)
blocks = st.one_of(
    hnp.arrays(np.float32, st.integers(0, 40), elements=ANY),
    hnp.arrays(np.float32, st.integers(0, 3 * ROW), elements=ANY, fill=ANY),
).map(torch.from_numpy)


def there_and_back(codec: Codec, values: Tensor) -> Tensor:
    data = torch.full((codec.room(len(values)) + 3,), 0xA5, dtype=torch.uint8)
    used = codec.encode(values, data)
    assert used <= codec.room(len(values))
    assert (data[used:] == 0xA5).all()
    out = torch.full((len(values),), torch.inf)
    codec.decode(data[:used], out)
    return out


def gradient(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def by_row(values: Tensor) -> list[Tensor]:
    return list(values.split(ROW))


def test_every_codec_of_the_catalog_is_tried() -> None:
    assert {text.partition(":")[0] for text in TEXTS} == {n.partition(":")[0] for n in CODECS}


@pytest.mark.parametrize("text", ["", "int9", "topk", "topk:", "topk:0", "topk:2", "int8:3"])
def test_what_is_no_codec_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        make_codec(text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_codec_knows_its_name(text: str) -> None:
    assert make_codec(text).name == text
    assert make_codec(text).lossy == (text != "none")


@pytest.mark.parametrize("count", COUNTS)
def test_pieces_are_all_rows_once(count: int) -> None:
    found = pieces(count)
    assert [i for p in found for i in range(p.at.start, p.at.stop)] == list(range(count))
    assert [r for p in found for r in range(p.rows.start, p.rows.stop)] == list(
        range(row_count(count))
    )
    assert all(p.shape[0] * p.shape[1] == p.at.stop - p.at.start <= CHUNK for p in found)
    assert all(p.at.start == p.rows.start * ROW for p in found)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("count", COUNTS)
def test_every_length_goes_there_and_back(text: str, count: int) -> None:
    values = gradient(count)
    kept = values.clone()
    back = there_and_back(make_codec(text), values)
    assert torch.equal(values, kept)
    assert back.isfinite().all()
    assert torch.linalg.vector_norm(values - back) <= torch.linalg.vector_norm(values)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("count", COUNTS)
def test_nought_stays_nought(text: str, count: int) -> None:
    assert torch.equal(there_and_back(make_codec(text), torch.zeros(count)), torch.zeros(count))


@settings(deadline=None)
@given(values=blocks, text=st.sampled_from(TEXTS))
def test_finite_stays_finite(values: Tensor, text: str) -> None:
    """Up to the largest float. Only a row's sum may overflow."""
    if text == "onebit":
        values = values / ROW
    assert there_and_back(make_codec(text), values).isfinite().all()


@settings(deadline=None)
@given(values=blocks)
def test_none_loses_nothing(values: Tensor) -> None:
    assert torch.equal(there_and_back(make_codec("none"), values), values)


@settings(deadline=None)
@given(values=blocks)
def test_bf16_keeps_eight_bits(values: Tensor) -> None:
    back = there_and_back(make_codec("bf16"), values).double()
    assert ((back - values).abs() <= values.double().abs() * 2**-8 + 1e-40).all()


@settings(deadline=None)
@given(values=blocks)
def test_fp16_keeps_eleven_bits_within_its_range(values: Tensor) -> None:
    back = there_and_back(make_codec("fp16"), values).double()
    inside = values.double().clamp(-65504, 65504)
    assert ((back - inside).abs() <= inside.abs() * 2**-11 + 2**-25).all()


@settings(deadline=None)
@given(values=blocks)
def test_int8_is_off_by_half_a_scale_at_most(values: Tensor) -> None:
    back = there_and_back(make_codec("int8"), values)
    for row, got in zip(by_row(values.double()), by_row(back.double()), strict=True):
        scale = row.abs().max() / 127 if len(row) else 0.0
        # Rows so small that a scale would have no inverse are sent as nought.
        assert ((got - row).abs() <= scale * 0.501 + 1.6e-36).all()


@settings(deadline=None)
@given(values=blocks)
def test_onebit_gives_the_two_means_of_a_row(values: Tensor) -> None:
    values = values / ROW
    back = there_and_back(make_codec("onebit"), values)
    for row, got in zip(by_row(values.double()), by_row(back.double()), strict=True):
        for group in (row >= 0, row < 0):
            if group.any():
                mean = row[group].mean()
                assert ((got[group] - mean).abs() <= mean.abs() * 1e-4 + 1e-42).all()


@settings(deadline=None)
@given(values=blocks, ratio=st.sampled_from([1e-9, 0.01, 0.1, 0.5, 1.0]))
def test_topk_keeps_the_largest_as_they_are(values: Tensor, ratio: float) -> None:
    back = there_and_back(make_codec(f"topk:{ratio}"), values)
    kept = min(len(values), max(1, math.ceil(ratio * len(values))))
    order = torch.sort(values.abs(), descending=True, stable=True).indices
    expected = torch.zeros(len(values))
    expected[order[:kept]] = values[order[:kept]]
    assert torch.equal(back, expected)


@pytest.mark.parametrize("kept", [1, 100, 5000, 60_000])
@pytest.mark.parametrize("shape", ["noise", "ramp", "sparse", "level", "comb"])
def test_a_sample_that_misleads_costs_no_exactness(kept: int, shape: str) -> None:
    """`comb` has its peaks where the sample looks, and then its valleys."""
    size = 1 << 16
    base = np.random.default_rng(3).integers(0, 1 << 30, size, dtype=np.int32)
    index = np.arange(size)
    sizes = {
        "noise": base,
        "ramp": index.astype(np.int32),
        "sparse": np.where(index % 1000 == 1, base, 0).astype(np.int32),
        "level": np.full(size, 7, np.int32),
        "comb": np.where(index % 64 == 0, base, base >> 8).astype(np.int32),
    }[shape]
    expected = np.sort(np.argsort(-sizes.astype(np.int64), kind="stable")[:kept])
    np.testing.assert_array_equal(largest(sizes, kept), expected)


@settings(deadline=None)
@given(
    count=st.integers(1, 3 * ROW),
    where=st.integers(0, 3 * ROW),
    bad=st.sampled_from([math.nan, math.inf, -math.inf]),
    text=st.sampled_from(TEXTS),
)
def test_what_is_not_finite_is_never_hidden(count: int, where: int, bad: float, text: str) -> None:
    values = gradient(count)
    where %= count
    values[where] = bad
    back = there_and_back(make_codec(text), values)
    assert not back[where].isfinite()
    spoiled = torch.zeros(count, dtype=torch.bool)
    if text in ROWED:
        row = where // ROW
        spoiled[row * ROW : (row + 1) * ROW] = True
    spoiled[where] = True
    assert torch.equal(~back.isfinite(), spoiled)


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_values_give_the_same_bytes(text: str) -> None:
    """Whatever the codec did before, and wherever the bytes begin."""
    values = gradient(CHUNK + 100)
    codec = make_codec(text)
    room = codec.room(len(values))
    seen = []
    for shift in (0, 1, 2, 3, 5):
        area = torch.full((room + 8,), shift, dtype=torch.uint8)
        codec.encode(gradient(CHUNK + 200, seed=shift), torch.empty(2 * room + 800).byte())
        used = codec.encode(values, area[shift:])
        out = torch.empty(len(values))
        codec.decode(area[shift : shift + used], out)
        seen.append((area[shift : shift + used].clone(), out))
    for data, out in seen[1:]:
        assert torch.equal(data, seen[0][0])
        assert torch.equal(out, seen[0][1])


@pytest.mark.parametrize(
    ("text", "least"),
    [("bf16", 2), ("fp16", 2), ("int8", 3.98), ("topk:0.01", 49.9), ("onebit", 30)],
)
def test_blocks_are_as_small_as_the_catalog_says(text: str, least: float) -> None:
    count = 1 << 19
    assert 4 * count / make_codec(text).room(count) >= least
