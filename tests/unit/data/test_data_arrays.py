from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import IterableDataset, TensorDataset

from paceline.data.arrays import Arrays, FromTorch
from paceline.errors import DataError
from paceline.kernels.load import kernels

images = np.random.default_rng(0).integers(0, 256, (50, 12), dtype=np.uint8)
labels = np.arange(50, dtype=np.uint8) % 10


@given(st.lists(st.integers(0, 49), max_size=80))
def test_a_batch_is_what_plain_numpy_gives(picked: list[int]) -> None:
    rows = np.array(picked, dtype=np.int64)
    x, y = Arrays(images, labels, scale=1 / 255, shape=(1, 3, 4)).batch(rows)
    assert x.shape == (len(rows), 1, 3, 4)
    assert x.dtype == torch.float32
    assert y.dtype == torch.int64
    expected = images[rows].astype(np.float32).reshape(-1, 1, 3, 4) * np.float32(1 / 255)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(y.numpy(), labels[rows])


@given(st.lists(st.integers(0, 49), max_size=80), st.sampled_from([(12,), (1, 3, 4)]))
def test_compiled_loops_make_the_same_to_the_bit(picked: list[int], shape: tuple[int, ...]) -> None:
    rows = np.array(picked, dtype=np.int64)
    plain, quick = (Arrays(images, labels, scale=1 / 255, shape=shape) for _ in range(2))
    found = kernels(True)
    assert found is not None, "LLVM compiles nothing on this machine"
    quick.quicken(found)
    for one, other in zip(plain.batch(rows), quick.batch(rows), strict=True):
        assert torch.equal(one, other)
        assert one.dtype == other.dtype
    for same in (rows.astype(np.int32), np.stack([rows, rows], 1)[:, 0]):  # loops take neither
        assert torch.equal(plain.batch(same)[0], quick.batch(same)[0])


@pytest.mark.parametrize("odd", [[0, 50], [50], [-51], [3, 1 << 62]])
def test_a_row_that_is_not_there_is_told_by_compiled_loops_too(odd: list[int]) -> None:
    quick = Arrays(images, labels, scale=1 / 255)
    found = kernels(True)
    assert found is not None
    quick.quicken(found)
    with pytest.raises(IndexError):
        quick.batch(np.array(odd))


def test_tensors_serve_as_columns_and_share_their_memory() -> None:
    column = torch.zeros(4, 2)
    data = Arrays(column, torch.tensor([0, 1, 2, 3]))
    column[3] = 7
    x, y = data.batch(np.array([3, 0]))
    assert x.tolist() == [[7, 7], [0, 0]]
    assert y.tolist() == [3, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.bool_])
def test_what_is_not_an_integer_passes_untouched(dtype: type[np.generic]) -> None:
    column = np.ones((3, 2), dtype)
    (x,) = Arrays(column, scale=0.5).batch(np.array([1]))
    assert x.numpy().dtype == dtype
    assert (x.numpy() == column[1]).all()


@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8"])
def test_integers_without_a_scale_become_int64(dtype: str) -> None:
    (x,) = Arrays(np.arange(6, dtype=dtype).reshape(3, 2)).batch(np.array([2, 1]))
    assert x.dtype == torch.int64
    assert x.tolist() == [[4, 5], [2, 3]]


def test_a_batch_never_aliases_the_samples() -> None:
    column = np.zeros((3, 2), np.float32)
    (x,) = Arrays(column).batch(np.array([0, 1, 2]))
    x.fill_(1)
    assert column.sum() == 0


def test_read_only_memory_maps_and_rows_raise_no_warning(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows = np.arange(5)
    rows.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x,) = Arrays(mapped, scale=1.0).batch(rows)
    np.testing.assert_array_equal(x.numpy(), images[:5])


def test_faulty_columns_are_told() -> None:
    with pytest.raises(DataError, match=r"\[50, 3\] rows"):
        Arrays(images, labels[:3])
    with pytest.raises(DataError, match=r"\(12,\) cannot be given the shape \(5,\)"):
        Arrays(images, shape=(5,))
    with pytest.raises(DataError, match="at least one"):
        Arrays()
    with pytest.raises(DataError, match="column 1"):
        Arrays(images, np.array(["a"] * 50))
    with pytest.raises(DataError, match="column 0"):
        Arrays(np.float32(3))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"column 0 .*bfloat16"):
        Arrays(torch.zeros(3, dtype=torch.bfloat16))


def test_rows_out_of_range_are_refused() -> None:
    with pytest.raises(IndexError):
        Arrays(images).batch(np.array([50]))


def test_a_torch_data_set_is_collated() -> None:
    samples = FromTorch(TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4)))
    assert len(samples) == 4
    x, y = samples.batch(np.array([3, 1]))
    assert x.tolist() == [[6, 7], [2, 3]]
    assert y.tolist() == [3, 1]
    x, y = samples.batch(np.array([], dtype=np.int64))
    assert (x.shape, y.shape) == ((0, 2), (0,))


def test_a_plain_sequence_of_tensors_is_a_data_set_too() -> None:
    (x,) = FromTorch([torch.ones(2), torch.zeros(2)]).batch(np.array([1, 0]))  # type: ignore[arg-type]
    assert x.tolist() == [[0, 0], [1, 1]]


def test_torch_data_sets_that_cannot_serve_are_told() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

        def __len__(self) -> int:
            return 3

    with pytest.raises(DataError, match="Stream is not a map-style"):
        FromTorch(Stream())
    with pytest.raises(DataError, match="set is not a map-style"):
        FromTorch({1, 2})  # type: ignore[arg-type]
    with pytest.raises(DataError, match="samples of type dict"):
        FromTorch([{"x": 1}]).batch(np.array([0]))  # type: ignore[arg-type]
