"""The public names: all there, all importable, torch only when one of them needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import paceline


@pytest.mark.parametrize("name", paceline.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(paceline, name) is not None
    assert name in dir(paceline)


def test_the_list_of_names_is_sorted_and_agrees_with_where_they_live() -> None:
    assert paceline.__all__ == sorted(set(paceline.__all__))
    assert set(paceline._HOMES) == set(paceline.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = paceline.fitt


def test_importing_the_package_imports_no_torch() -> None:
    program = (
        "import sys, paceline; paceline.RunSpec(); paceline.fit; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_the_version_is_the_distributions() -> None:
    from importlib.metadata import version

    assert paceline.__version__ == version("paceline")
