"""Segments: seen by all who map them, gone with the last."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest
import torch

from paceline.transport import large_pages, memory

pytestmark = pytest.mark.skipif(not memory.available(), reason="no memfd here")


def test_two_maps_see_the_same_floats() -> None:
    fd = memory.new_segment("test")
    memory.size_segment(fd, 6)
    one, two = memory.floats(fd, (2, 3)), memory.floats(fd, (6,))
    assert torch.equal(one, torch.zeros(2, 3))
    one[1, 2] = 5.0
    assert two[5] == 5.0
    os.close(fd)
    one[0, 0] = 7.0  # a map outlives its descriptor
    assert two[0] == 7.0


def test_a_segment_has_no_name_to_leave_behind() -> None:
    before = set(Path("/dev/shm").iterdir())
    fd = memory.new_segment("test")
    memory.size_segment(fd, 1000)
    assert set(Path("/dev/shm").iterdir()) <= before
    assert "memfd:paceline-test" in str(Path(f"/proc/self/fd/{fd}").readlink())
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_raw_is_the_tensor_itself() -> None:
    values = torch.zeros(3)
    memory.raw(values)[0:4] = memory.raw(torch.ones(1))
    assert values.tolist() == [1.0, 0.0, 0.0]
    assert len(memory.raw(values[1:])) == 8


def test_of_a_large_segment_only_what_was_written_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    page = mmap.PAGESIZE // memory.FLOAT_BYTES
    monkeypatch.setattr(memory, "LARGE", page)
    fd = memory.new_segment("test")
    try:
        memory.size_segment(fd, 100 * page)
        head, body = memory.stretches(fd, [10 * page, 90 * page])
        assert head.used() == body.used() == []
        body.floats[5 * page + 3] = 1.0
        body.floats[89 * page] = 1.0
        assert head.used() == []
        assert body.used() == [(5 * page, 6 * page), (89 * page, 90 * page)]
        head.floats[0] = 1.0
        assert head.used() == [(0, page)]
        assert body.floats[5 * page + 3] == 1.0
    finally:
        os.close(fd)


@pytest.mark.parametrize("large", [False, True])
def test_memory_of_ones_own_is_zero(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    if large:
        monkeypatch.setattr(memory, "LARGE", 10)
    own = memory.own_stretch(100_000)
    assert (own.fd is not None) == large
    own.floats[70_000] = 2.0
    assert any(begin <= 70_000 < end for begin, end in own.used())
    assert own.floats.sum() == 2.0
    assert len(memory.own_area(12)) == 12


def test_a_large_segment_is_the_same_in_large_pages() -> None:
    """Mapped twice, put together under the eyes of the other, and gone with both."""
    count = large_pages.WORTHWHILE // memory.FLOAT_BYTES + 12345
    fd = memory.new_segment("pages")
    try:
        memory.size_segment(fd, count)
        one, two = memory.floats(fd, (count,)), memory.floats(fd, (count,))
        two[::1000] = torch.arange(len(two[::1000]), dtype=torch.float32)
        large_pages.put_together(one[777:])
        assert torch.equal(one, two)
        one[-1] = 3.0
        assert two[-1] == 3.0
        assert one.data_ptr() % large_pages.PAGE == 0
    finally:
        os.close(fd)
    part = one[5:8]
    del one, two
    assert part.tolist() == [0.0, 0.0, 0.0]
    del part
    assert "memfd:paceline-pages" not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("size", [1, 15, 16, 17, 7850])
def test_rows_begin_cache_lines_and_do_not_overlap(size: int) -> None:
    fd = memory.new_segment("test")
    memory.size_segment(fd, 3 * memory.padded(size))
    rows = memory.rows(fd, 3, size)
    assert rows.shape == (3, size)
    for number, row in enumerate(rows):
        assert row.data_ptr() % 64 == 0
        assert row.is_contiguous()
        row.fill_(number)
    assert [set(row.tolist()) for row in rows] == [{0.0}, {1.0}, {2.0}]
    os.close(fd)
