from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from web_client import TestClient

from paceline.web.app import Dashboard
from paceline.web.guard import Door


@pytest.fixture
def client(runs: Path) -> Iterator[TestClient]:
    """A browser without scripts, at a page over the folder of runs."""
    with TestClient(Dashboard(runs, Door(port=8765)).app, base_url="http://localhost:8765") as made:
        yield made
