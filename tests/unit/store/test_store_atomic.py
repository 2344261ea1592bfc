"""write_atomic: the old file or the new one, and never a leftover."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.files import pretend_full
from paceline.store.append import AppendFile
from paceline.store.atomic import write_atomic


def test_replaces_whole_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomic(path, "first")
    write_atomic(path, b"second")
    assert path.read_bytes() == b"second"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    before = os.umask(0o022)
    try:
        write_atomic(path, "x")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "a.json"
    write_atomic(path, "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(StoreError, match=r"a\.json': no space left on device; free .* --out"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="gone/a': no such file or directory"):
        write_atomic(tmp_path / "gone" / "a", "x")


def test_a_folder_that_pretends_to_be_full_takes_nothing(tmp_path: Path) -> None:
    full, other = tmp_path / "full", tmp_path / "other"
    (full / "steps").mkdir(parents=True)
    other.mkdir()
    write_atomic(full / "a.json", "first")
    lines = AppendFile(full / "steps" / "worker-0.steps")
    lines.append(b"row")
    pretend_full(full, True)
    try:
        with pytest.raises(StoreError, match="no space left on device; free some space there"):
            write_atomic(full / "a.json", "second")
        with pytest.raises(StoreError, match="no space left on device"):
            lines.append(b"row")
        write_atomic(other / "a.json", "second")
    finally:
        pretend_full(full, False)
    assert (full / "a.json").read_text() == "first"
    assert lines.path.read_bytes() == b"row"
    lines.append(b"row")
    lines.close()
    assert lines.path.read_bytes() == b"rowrow"
    assert sorted(p.name for p in full.iterdir()) == ["a.json", "steps"]
