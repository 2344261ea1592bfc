"""Where things are kept, whatever the environment has or lacks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from paceline import env


def test_the_cache_is_where_it_was_asked_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PACELINE_CACHE", raising=False)
    assert env.cache_dir() == tmp_path / "paceline"
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "own"))
    assert env.cache_dir() == tmp_path / "own"


def test_a_user_without_a_home_has_a_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PACELINE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(env.Path, "home", homeless)
    assert env.cache_dir().parent == Path(tempfile.gettempdir())
