"""Steps files: what is appended is read, whatever the disk or a killed writer did."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import StoreError
from paceline.store.steps import (
    BUFFER_ROWS,
    FIRST,
    HEADER,
    NOW,
    ROW,
    STEP,
    StepWriter,
    read_steps,
)
from paceline.types import FINE, PHASES

u4 = st.integers(0, 2**32 - 1)
f4 = st.floats(width=32)
f8 = st.floats()
rows = st.lists(st.tuples(f8, u4, u4, u4, f4, *[f4] * 9, f8, st.integers(0, 2**64 - 1), u4))


def row(step: int) -> tuple[float, ...]:
    phases = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    return (step + 0.5, step, 1, 64, 0.25, *phases, step + 0.25, step + 7, 2)


def write(path: Path, numbers: range) -> None:
    writer = StepWriter(path)
    for number in numbers:
        writer.append(*row(number))
    writer.close()


def test_a_row_is_80_bytes_without_padding() -> None:
    assert ROW == 80


@settings(max_examples=50, deadline=None)
@given(written=rows)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, written: list[tuple[float]]) -> None:
    path = tmp_path_factory.mktemp("steps") / "w.steps"
    writer = StepWriter(path)
    for values in written:
        writer.append(*values)
    writer.close()
    read, expected = read_steps(path), np.array(written, dtype=NOW.row)
    for name in NOW.row.names or ():
        assert np.array_equal(read[name], expected[name], equal_nan=True), name


def test_a_full_buffer_flushes_itself_and_the_rest_at_close(tmp_path: Path) -> None:
    path = tmp_path / "w.steps"
    writer = StepWriter(path)
    for number in range(BUFFER_ROWS + 1):
        writer.append(*row(number))
    assert len(read_steps(path)) == BUFFER_ROWS
    writer.close()
    assert read_steps(path)["step"].tolist() == list(range(BUFFER_ROWS + 1))


def test_flush_makes_rows_seen(tmp_path: Path) -> None:
    path = tmp_path / "w.steps"
    writer = StepWriter(path)
    writer.append(*row(0))
    assert len(read_steps(path)) == 0
    writer.flush()
    assert len(read_steps(path)) == 1
    writer.close()


def test_a_loss_beyond_single_precision_is_infinite(tmp_path: Path) -> None:
    path = tmp_path / "w.steps"
    writer = StepWriter(path)
    for loss in (1e300, -1e300, float("nan")):
        writer.append(1.0, 1, 1, 1, loss, *row(1)[5:])
    writer.close()
    assert read_steps(path)["loss"][:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(read_steps(path)["loss"][2])


def test_a_row_with_a_value_missing_is_refused(tmp_path: Path) -> None:
    writer = StepWriter(tmp_path / "w.steps")
    with pytest.raises(Exception, match="17"):
        writer.append(*row(1)[:-1])
    writer.close()
    assert len(read_steps(tmp_path / "w.steps")) == 0


def test_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert read_steps(tmp_path / "none.steps").dtype == STEP
    assert len(read_steps(tmp_path / "none.steps")) == 0


def test_torn_at_every_byte_reads_whole_rows_and_can_be_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "w.steps"
    write(path, range(3))
    whole = path.read_bytes()
    assert len(whole) == len(HEADER) + 3 * ROW
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = max(0, cut - len(HEADER)) // ROW
        assert read_steps(path)["step"].tolist() == list(range(kept))
        write(path, range(kept, 3))
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"something else entirely\n", "not a steps file"),
        (HEADER.replace(b"arrival", b"landing"), "other columns"),
    ],
)
def test_foreign_files_are_refused_and_left_alone(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "w.steps"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=said):
        read_steps(path)
    with pytest.raises(StoreError, match=said):
        StepWriter(path)
    assert path.read_bytes() == content


def test_unreadable_path_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot read"):
        read_steps(tmp_path)


@given(allowed=st.integers(0, 5 * ROW))
@settings(max_examples=30, deadline=None)
def test_disk_full_at_any_byte_never_misaligns(
    tmp_path_factory: pytest.TempPathFactory, allowed: int
) -> None:
    """The disk takes `allowed` bytes in small writes, is full, and has room again later."""
    path = tmp_path_factory.mktemp("full") / "w.steps"
    real, left = os.write, allowed

    def small(fd: int, data: memoryview) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        took = real(fd, bytes(data)[: min(left, 50)])
        left -= took
        return took

    writer = StepWriter(path)
    for number in range(4):
        writer.append(*row(number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", small)
        if allowed < 4 * ROW:
            with pytest.raises(StoreError, match="no space left on device; free some space"):
                writer.flush()
            assert len(read_steps(path)) == 0
    writer.append(*row(4))
    writer.close()
    assert read_steps(path)["step"].tolist() == list(range(5))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 kB, where mounting one is permitted."""
    where = tmp_path / "disk"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(where)]
    try:
        permitted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        permitted = False
    if not permitted:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_disk_that_is_really_full(tiny_disk: Path) -> None:
    path = tiny_disk / "w.steps"
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(40_000))
    writer = StepWriter(path)
    for number in range(800):
        writer.append(*row(number))
    with pytest.raises(StoreError, match="no space left on device"):
        writer.flush()
    assert len(read_steps(path)) == 0
    ballast.unlink()
    writer.close()
    assert read_steps(path)["step"].tolist() == list(range(800))


def test_appending_is_cheap(tmp_path: Path) -> None:
    """Told, not asserted: this machine is shared."""
    writer = StepWriter(tmp_path / "w.steps")
    values, count = row(1), 50_000
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            writer.append(*values)
        best = min(best, time.perf_counter() - begin)
    writer.close()
    print(f"StepWriter.append: {1e6 * best / count:.2f} us")  # noqa: T201


def test_phases_are_the_sums_of_the_finer_ones(tmp_path: Path) -> None:
    write(tmp_path / "w.steps", range(3))
    steps = read_steps(tmp_path / "w.steps")
    assert steps["compute"] == pytest.approx([0.9] * 3)  # copy, forward, backward
    assert steps["exchange"] == pytest.approx([1.8] * 3)  # encode, push, pull
    assert sum(steps[phase] for phase in PHASES) == pytest.approx(sum(steps[f] for f in FINE))


def test_a_file_of_the_first_version_is_read_and_taken_up_in_its_own_form(tmp_path: Path) -> None:
    path = tmp_path / "w.steps"
    old = [(0.5, n, 1, 64, 0.25, 0.1, 0.2, 0.3, 0.4, 0.5, 0.2, 7, 2) for n in (1, 2, 3)]
    path.write_bytes(FIRST.header + np.array(old, dtype=FIRST.row).tobytes() + b"torn")
    writer = StepWriter(path, after=2)
    writer.append(*row(3))
    writer.close()
    steps = read_steps(path)
    assert steps["step"].tolist() == [1, 2, 3]
    assert steps["compute"] == pytest.approx([0.2, 0.2, 0.9])
    assert steps["exchange"] == pytest.approx([0.3, 0.3, 1.8])
    assert np.isnan([steps[name] for name in FINE if name not in PHASES]).all()


@given(rows=st.integers(0, 40), after=st.integers(0, 50), torn=st.integers(0, ROW - 1))
@settings(max_examples=60, deadline=None)
def test_a_writer_goes_on_after_a_step(
    tmp_path_factory: pytest.TempPathFactory, rows: int, after: int, torn: int
) -> None:
    """What was recorded of later steps is dropped, and so is a torn row."""
    path = tmp_path_factory.mktemp("steps") / "w.steps"
    write(path, range(1, rows + 1))
    with path.open("ab") as file:
        file.write(bytes(torn))
    writer = StepWriter(path, after)
    writer.append(*row(after + 1))
    writer.close()
    assert list(read_steps(path)["step"]) == [*range(1, min(rows, after) + 1), after + 1]
