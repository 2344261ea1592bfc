"""Rows of shards as samples: the same whatever is asked for together; blocks are let go."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import paceline
from paceline.data.open import open_data
from paceline.data.sampler import InChunks, Order, order
from paceline.data.sparse import samples as sampling
from paceline.data.sparse.rows import SparseRows
from paceline.errors import DataError, PacelineError


@given(
    samples=st.integers(1, 300),
    chunk=st.integers(1, 40),
    mixed=st.integers(1, 4),
    run=st.integers(1, 9),
    epoch=st.integers(0, 3),
    cuts=st.lists(st.integers(0, 300), max_size=6),
)
def test_chunk_by_chunk_every_sample_comes_once(
    samples: int, chunk: int, mixed: int, run: int, epoch: int, cuts: list[int]
) -> None:
    with patch.multiple("paceline.data.sampler", MIXED=mixed, RUN=run):
        whole = InChunks(samples, 5, chunk).rows(epoch, 0, samples)
        assert sorted(whole.tolist()) == list(range(samples))
        ends = sorted({0, samples, *(min(cut, samples) for cut in cuts)})
        again = InChunks(samples, 5, chunk)
        again.rows((epoch + 1) % 4, 0, min(3, samples))  # another epoch in between
        parts = [again.rows(epoch, a, b) for a, b in pairwise(ends)]
        assert np.concatenate([*parts, np.empty(0, int)]).tolist() == whole.tolist()
        # What is mixed at a time is of few chunks.
        for part in np.array_split(whole, range(mixed * chunk, samples, mixed * chunk)):
            assert len(set((part // chunk).tolist())) <= 2 * mixed


def test_a_sample_comes_with_others_from_everywhere() -> None:
    rows = InChunks(1_000_000, 0, 1024).rows(0, 0, 1000)
    assert len(set((rows // 1024).tolist())) > 40
    assert (np.diff(rows) == 1).mean() > 0.8  # and is read mostly in order


def test_samples_say_how_they_are_best_taken(tmp_path: Path) -> None:
    data = open_data("clicks:500x1000", str(tmp_path))
    assert isinstance(order(data.train, 0), InChunks)
    assert type(order(range(5), 0)) is Order


@pytest.mark.parametrize("large", [False, True])
def test_a_batch_is_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    from paceline.data import clicks

    monkeypatch.setattr(clicks, "SHARD", 70)
    monkeypatch.setattr(sampling, "CHUNK", 30)
    if large:
        monkeypatch.setattr(sampling, "KEPT", 0)
        monkeypatch.setattr(sampling, "MOST_HELD", 2)
    train = open_data("clicks:300x1000", str(tmp_path)).train
    one_by_one = [train.batch(np.array([row])) for row in range(300)]
    rng = np.random.default_rng(1)
    for _ in range(20):
        rows = rng.permutation(300)[: rng.integers(1, 60)]
        found, labels = train.batch(rows)
        assert len(found) == len(rows)
        assert labels.tolist() == [one_by_one[row][1].item() for row in rows]
        ends = found.offsets.tolist()
        for place, row in enumerate(rows):
            entries = found.ids[ends[place] : ends[place + 1]]
            assert entries.tolist() == one_by_one[row][0].ids.tolist()


@pytest.mark.parametrize("large", [False, True])
def test_of_very_many_rows_only_what_is_asked_for_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """Else the system reads megabytes around each, and in little memory drops others for them."""
    if large:
        monkeypatch.setattr(sampling, "KEPT", 0)
    data = open_data("clicks:300x1000", str(tmp_path))
    areas = Path("/proc/self/smaps").read_text().split("VmFlags: ")
    flags = {
        after.partition("\n")[0]
        for before, after in pairwise(areas)
        if f"{tmp_path}" in before and ".ids.npy" in before
    }
    assert len(data.train)
    assert flags
    assert {" rr" in found for found in flags} == {large}


def test_rows_are_cut_in_whole_pieces(tmp_path: Path) -> None:
    rows, _ = open_data("clicks:20x1000", str(tmp_path)).train.batch(np.arange(20))
    part = rows[5:9]
    assert isinstance(part, SparseRows)
    assert len(part) == 4
    assert part.ids.tolist() == rows.ids[rows.offsets[5] : rows.offsets[9]].tolist()
    assert part.offsets[0] == 0
    with pytest.raises(IndexError):
        rows[::2]


def test_only_entries_as_loops_read_them_are_located() -> None:
    ids, offsets = torch.arange(6, dtype=torch.int32), torch.tensor([0, 2, 3])
    assert SparseRows(ids[1:4], offsets).located().counts.tolist() == [2, 1]
    for odd in (ids.long(), ids[::2]):
        with pytest.raises(TypeError, match="int32, side by side"):
            SparseRows(odd, offsets).located()


def test_a_shard_with_features_that_there_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "clicks" / "20x1000-0"
    open_data("clicks:20x1000", str(tmp_path))
    ids = np.load(folder / "00000.ids.npy")
    ids[7 * 39 + 3] = 1000
    np.save(folder / "00000.ids.npy", ids)
    train = open_data("clicks:20x1000", str(tmp_path)).train
    assert len(train.batch(np.arange(7))[0].ids) == 7 * 39
    rows, _ = train.batch(np.arange(5, 9))
    with pytest.raises(DataError, match="it is damaged; convert the data again"):
        assert rows.ids
    with pytest.raises(DataError, match="rows or features that there are not"):
        train.batch(np.array([20]))


@pytest.mark.parallel
@pytest.mark.parametrize("strategy", ["single", "hogwild"])
def test_a_damaged_shard_ends_a_run(tmp_path: Path, strategy: str) -> None:
    folder = tmp_path / "clicks" / "20x1000-0"
    open_data("clicks:20x1000", str(tmp_path))
    ids = np.load(folder / "00000.ids.npy")
    ids[7 * 39 + 3] = -5
    np.save(folder / "00000.ids.npy", ids)
    asked = {"task": "sparse-logreg", "data": "shards", "data_dir": str(folder), "batch": 20}
    with pytest.raises(PacelineError, match="damaged; convert the data again"):
        paceline.fit(**asked, out=tmp_path / "runs", strategy=strategy, max_restarts=0)


@given(lengths=st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any))
def test_the_shard_of_a_row_is_found_however_long_others_are(lengths: list[int]) -> None:
    first = np.cumsum([0, *lengths])
    for row in range(sum(lengths)):
        found = sampling._shard_of(first, row)
        assert found == np.searchsorted(first, row, side="right") - 1
