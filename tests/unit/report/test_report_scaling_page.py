"""docs/SCALING.md: its tables are what the code computes, and what it names is there."""

from __future__ import annotations

import importlib
import re

import pytest

from tools.scaling_page import PAGE, page

TEXT = PAGE.read_text(encoding="utf-8")
NAMED = [
    (module, name)
    for module, names in re.findall(r"`(\w+)\.py`: ((?:`\w+`(?:, )?)+)", TEXT)
    for name in re.findall(r"\w+", names)
]


def test_the_tables_are_what_the_published_files_say() -> None:
    assert page() == TEXT, "`python -m tools.scaling_page` writes them"


def test_the_price_of_two_machines_is_told() -> None:
    assert "it counts 1 g3.16xlarge where 2 ran; the price of what ran is 40.04" in TEXT
    assert TEXT.count("**no**") == 1


def test_it_names_functions() -> None:
    assert len(NAMED) >= 10


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_a_function_it_names_is_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(f"paceline.diagnose.{module}"), name)
