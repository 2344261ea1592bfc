"""Imports point one way: cli → launch → worker → exchange → server → transport.

The table says, for each room, which others it may import; whoever reads it knows the design.
Imports for type checkers only do not count, imports inside functions do.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "paceline"

# Anybody may use these, and the catalogs: names of things, without the things.
COMMON = {"errors", "types", "env", "files", "interrupts", "spec", "measure", "catalog", "kernels"}

MAY_IMPORT: dict[str, set[str]] = {
    # the way of a batch
    "cli": {"api", "sweeps", "study", "report", "diagnose", "store", "data", "doctor", "web"},
    "sweeps": {"api", "study", "report", "store"},
    "api": {"launch", "report", "diagnose", "store", "tasks", "data"},
    "launch": {"worker", "exchange", "server", "transport", "store", "data"},
    "worker": {"exchange", "server", "transport", "store", "tasks", "data"},
    "exchange": {"server", "transport"},
    "server": {"transport"},
    "transport": set(),
    # what is trained
    "tasks": {"data"},
    "data": set(),
    # which runs answer a question
    "study": set(),
    # what is kept, read and told
    "store": set(),
    "diagnose": {"store"},
    "report": {"store", "diagnose"},
    "web": {"store", "diagnose", "report"},
    # what a machine is good for: measured with what trains, judged by what explains
    "doctor": {"diagnose", "launch", "worker", "exchange", "server", "transport", "tasks"},
    # what all rest on; these may not lean on COMMON as a whole
    "spec": {"errors", "catalog"},
    "measure": {"types"},
    "catalog": {"errors", "data.shape"},
    "files": set(),
    "interrupts": set(),
    "kernels": {"env", "files"},
    "types": set(),
    "errors": set(),
    "env": set(),
}
LEAVES = {"spec", "measure", "catalog", "files", "interrupts", "kernels", "types", "errors", "env"}

# They read what a run left behind, on machines that may have no torch at all.
WITHOUT_TORCH = (
    "cli",
    "spec",
    "study",
    "store",
    "measure",
    "diagnose",
    "report",
    "web",
    "errors",
    "types",
    "env",
)


def modules() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    """`exchange.catalog` is a catalog, `exchange.gates` is in the room `exchange`."""
    return "catalog" if name.endswith(".catalog") else name.partition(".")[0]


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module named by an import, save for those that only type checkers follow."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imports(other)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from _from(node)
        else:
            yield from imports(node)


def _from(node: ast.ImportFrom) -> Iterator[str]:
    """`from paceline.data import catalog` names a module, `… import RunSpec` does not."""
    base = node.module or ""
    if not base.startswith("paceline"):
        yield base
        return
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        path = ROOT.parent / Path(*inner.split("."))
        yield inner if path.is_dir() or path.with_suffix(".py").is_file() else base


def imported(path: Path) -> set[str]:
    return set(imports(ast.parse(path.read_text())))


def allowed(name: str, target: str) -> bool:
    mine, theirs = room(name), room(target)
    if mine == theirs and mine != "catalog":
        return True
    may = MAY_IMPORT[mine] if mine in LEAVES else MAY_IMPORT[mine] | COMMON
    return theirs in may or target in may


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_module_imports_only_what_the_table_allows(path: Path) -> None:
    name = dotted(path)
    assert room(name) in MAY_IMPORT, f"say in the table what the room '{room(name)}' may import"
    ours = {target.removeprefix("paceline.") for target in imported(path) if "paceline." in target}
    wrong = sorted(target for target in ours if not allowed(name, target))
    assert not wrong, f"{name} may not import {', '.join(wrong)}"


def test_the_table_has_no_circles() -> None:
    def below(one: str, seen: tuple[str, ...] = ()) -> None:
        assert one not in seen, " → ".join([*seen, one])
        for other in MAY_IMPORT[one]:
            if other in MAY_IMPORT:
                below(other, (*seen, one))

    for one in MAY_IMPORT:
        below(one)


def test_no_room_of_the_table_is_gone() -> None:
    assert set(MAY_IMPORT) - {"catalog"} == {room(dotted(path)) for path in modules()} - {"catalog"}


def torchless() -> list[Path]:
    return [path for path in modules() if room(dotted(path)) in (*WITHOUT_TORCH, "catalog")]


@pytest.mark.parametrize("path", torchless(), ids=dotted)
def test_no_line_of_it_names_torch(path: Path) -> None:
    assert not {name for name in imported(path) if name.partition(".")[0] == "torch"}


def test_importing_them_all_imports_no_torch() -> None:
    """Also not by way of another room."""
    names = [f"paceline.{dotted(path)}" for path in torchless() if path.stem != "__main__"]
    program = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_there_is_one_door_to_the_environment() -> None:
    """Save for a variable that is set, not read, for the library behind all-reduce."""
    for path in modules():
        if dotted(path) not in ("env", "worker.meeting"):
            assert "os.environ" not in path.read_text(), f"{dotted(path)} reads the environment"
