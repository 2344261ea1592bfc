"""Spans files: what a role was at, read while it is written and whatever a killed writer left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.measure.clock import Clock
from paceline.store.spans import MAGIC, SpanWriter, read_spans

NAMES = ("evaluate", "checkpoint")


def writer(path: Path) -> SpanWriter:
    return SpanWriter(path, NAMES, Clock(100.0))


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    spans = writer(tmp_path / "w.spans")
    spans.append(101.5, [0.25, 0.0])
    spans.append(103.0, [0.0, 0.5])
    spans.close()
    read = read_spans(tmp_path / "w.spans")
    assert read is not None
    assert read.dtype.names == ("begin", *NAMES)
    assert read.tolist() == [(1.5, 0.25, 0.0), (3.0, 0.0, 0.5)]


def test_pauses_are_written_at_once_even_if_they_fail(tmp_path: Path) -> None:
    spans = writer(tmp_path / "w.spans")
    with pytest.raises(ZeroDivisionError), spans.during("checkpoint"):
        1 / 0  # noqa: B018
    spans.timed("evaluate", time.sleep)(0.01)
    read = read_spans(tmp_path / "w.spans")
    assert read is not None
    assert read["evaluate"][0] == 0
    assert read["checkpoint"][1] == 0
    assert read["evaluate"][1] >= 0.01
    spans.close()


def test_torn_at_every_byte_it_is_read_and_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "w.spans"
    spans = writer(path)
    for begin in range(3):
        spans.append(100.0 + begin, [0.5, 0.5])
    spans.close()
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        read = read_spans(path)
        kept = 0 if read is None else len(read)
        again = writer(path)
        for begin in range(kept, 3):
            again.append(100.0 + begin, [0.5, 0.5])
        again.close()
        assert path.read_bytes() == whole


def test_none_of_runs_from_before_and_foreign_files_are_refused(tmp_path: Path) -> None:
    assert read_spans(tmp_path / "none.spans") is None
    (tmp_path / "other.spans").write_bytes(b"something else\nentirely\n")
    with pytest.raises(StoreError, match="not a spans file"):
        read_spans(tmp_path / "other.spans")
    (tmp_path / "bad.spans").write_bytes(MAGIC + b"{}\n")
    with pytest.raises(StoreError, match="damaged"):
        read_spans(tmp_path / "bad.spans")
