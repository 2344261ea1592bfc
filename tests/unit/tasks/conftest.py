from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests that only read: MNIST is decoded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, warm_cache: Path) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(warm_cache))
    monkeypatch.delenv("PACELINE_DATA", raising=False)
