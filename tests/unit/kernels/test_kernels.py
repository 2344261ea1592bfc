"""Compiled loops: made once on a machine, kept in a file, and not used if that is not as it was."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.kernels import load
from paceline.kernels.code import Executable, code_path, read_code, write_code
from paceline.kernels.load import kernels, worthwhile
from paceline.kernels.text import TEXTS

CODES = {name: b"\xc3" + name.encode() for name in TEXTS}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, in which nothing is yet."""
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path))
    path = code_path()
    assert path is not None
    return path


def test_compiled_by_the_first_who_gains_by_it(kept: Path) -> None:
    find = kernels.__wrapped__
    assert find(False) is None
    assert not kept.exists()
    assert find(True) is not None
    assert kept.is_file()
    assert find(False) is not None


def test_who_gains_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "kernels", lambda compiling: compiling)
    assert worthwhile(7_850, 10_000)
    assert worthwhile(20_000_000, 40)
    assert not worthwhile(7_850, 5_000)
    assert not worthwhile(20_000_000, 30)


def test_it_is_kept(kept: Path) -> None:
    kept.parent.mkdir()
    write_code(kept, CODES)
    assert read_code(kept) == CODES


def _damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"c3", b"90", 1))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _open_to_all(path: Path) -> None:
    path.chmod(0o666)


def _name_others(path: Path) -> None:
    write_code(path, {"other": b"\xc3"})


def _say_nothing(path: Path) -> None:
    path.write_text(json.dumps([1, 2]))


@pytest.mark.parametrize(
    "harm", [_damage, _cut, _open_to_all, _name_others, _say_nothing, Path.unlink]
)
def test_what_is_not_as_it_was_is_not_used(harm: Callable[[Path], None], kept: Path) -> None:
    kept.parent.mkdir()
    write_code(kept, CODES)
    harm(kept)
    assert read_code(kept) is None


def test_a_machine_that_forbids_it_leaves_it_to_torch(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(codes: dict[str, bytes]) -> Executable:
        raise OSError(errno.EACCES, "no")

    kept.parent.mkdir()
    write_code(kept, CODES)
    monkeypatch.setattr(load, "Executable", forbidden)
    assert kernels.__wrapped__(True) is None


def test_so_does_one_that_cannot_compile(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load.sys, "executable", "/bin/false")
    assert kernels.__wrapped__(True) is None
    monkeypatch.setattr(load.sys, "executable", "/no/such/program")
    assert kernels.__wrapped__(True) is None
