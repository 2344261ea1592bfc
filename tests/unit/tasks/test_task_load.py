from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from torch import nn

import paceline.tasks
from paceline.errors import DataError, TaskError
from paceline.spec import RunSpec
from paceline.tasks.base import Task
from paceline.tasks.catalog import BUILT_IN
from paceline.tasks.load import load_task

ROOT = Path(paceline.tasks.__file__).parents[2]
MINE = """
from torch import nn
from paceline.tasks.base import Task

class Mine(Task):
    lr = 0.25

    def model(self):
        return nn.Linear(3, 2)
"""


@pytest.fixture(autouse=True)
def own_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("paceline_task_", "sibling", "mine")):
            del sys.modules[name]


def write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(dedent(text))
    return path


def load(path: Path, name: str = "Mine") -> Task:
    return load_task(RunSpec(task=f"{path}:{name}"))


def fault(path: Path, name: str = "Mine") -> str:
    with pytest.raises(TaskError) as told:
        load(path, name)
    sentence = str(told.value)
    assert sentence.startswith(f"task '{path}:{name}': ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_tasks_are_found_and_told_the_spec(name: str) -> None:
    spec = RunSpec(task=name, data="synthetic:10x4:2", data_dir="/somewhere", seed=3)
    task = load_task(spec)
    assert isinstance(task, Task)
    assert type(task).__module__.startswith("paceline.tasks.")
    assert (task.data_name, task.data_dir, task.seed) == ("synthetic:10x4:2", "/somewhere", 3)


def test_what_the_spec_leaves_open_is_the_tasks_own(tmp_path: Path) -> None:
    path = write(tmp_path, MINE + "    data_name = 'synthetic:6x2:2'\n    data_dir = '/mine'\n")
    task = load(path)
    assert (task.data_name, task.data_dir, task.lr) == ("synthetic:6x2:2", "/mine", 0.25)


def test_a_file_may_import_its_siblings_and_use_itself_by_name(tmp_path: Path) -> None:
    write(tmp_path, "WIDTH = 5", "sibling_of_mine.py")
    text = """
        import sys
        from dataclasses import dataclass
        from torch import nn
        import sibling_of_mine
        from paceline.tasks.base import Task

        @dataclass
        class Mine(Task):
            width: int = sibling_of_mine.WIDTH

            def model(self):
                return nn.Linear(self.width, 2)
    """
    task = load(write(tmp_path, text))
    assert task.model().in_features == 5
    assert sys.modules[type(task).__module__].Mine is type(task)


def test_a_file_has_the_same_module_name_in_every_process(tmp_path: Path) -> None:
    path = write(tmp_path, MINE)
    script = (
        "import sys; from paceline.spec import RunSpec; from paceline.tasks.load import load_task; "
        "print(type(load_task(RunSpec(task=sys.argv[1]))).__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "./mine.py:Mine"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == type(load(path)).__module__


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path, MINE)
    assert load(path).lr == 0.25
    write(tmp_path, MINE.replace("0.25", "0.125"))
    assert load(path).lr == 0.125


def test_a_module_is_imported_by_name(tmp_path: Path) -> None:
    write(tmp_path, MINE, "mine_by_name.py")
    sys.path.insert(0, str(tmp_path))
    task = load_task(RunSpec(task="mine_by_name:Mine"))
    assert type(task) is sys.modules["mine_by_name"].Mine


def test_a_class_that_merely_looks_like_a_task_gets_the_rest(tmp_path: Path) -> None:
    text = """
        from torch import nn
        from paceline.data.open import open_data

        class Mine:
            batch = 7

            def model(self):
                return nn.Sequential(nn.Flatten(), nn.Linear(4, 2))

            def data(self):
                return open_data("synthetic:12x4:2")
    """
    task = load(write(tmp_path, text))
    assert (type(task).__name__, task.batch, task.optimizer) == ("Mine", 7, "sgd")
    batch = task.data().train.batch(np.arange(6))
    assert set(task.metrics(task.model(), batch)) == {"loss", "accuracy"}
    assert isinstance(task.model(), nn.Module)


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1\ndef broken(:\n    pass\n")
    assert f"{path} line 2 is not Python: invalid syntax" in fault(path)


def test_an_error_while_importing_is_told_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "\n\nimport no_such_module_anywhere\n")
    assert f"{path} line 3 raises ModuleNotFoundError: No module named" in fault(path)
    assert not [name for name in sys.modules if name.startswith("paceline_task_")]


def test_an_error_in_a_library_is_told_where_the_users_code_called_it(tmp_path: Path) -> None:
    path = write(tmp_path, "import json\n\njson.loads('{')\n")
    assert f"{path} line 3 raises JSONDecodeError" in fault(path)


def test_a_script_that_exits_does_not_end_the_worker(tmp_path: Path) -> None:
    path = write(tmp_path, "import sys\nsys.exit(3)\n")
    assert f"{path} line 2 raises SystemExit: 3" in fault(path)


def test_a_constructor_that_raises_is_told_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, MINE + "    def __init__(self):\n        raise ValueError('a\\nb')\n")
    assert f"{path} line 11 raises ValueError: a b." in fault(path)


def test_a_constructor_that_wants_arguments_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, MINE + "    def __init__(self, width): ...\n")
    assert "it cannot be made: TypeError: Mine.__init__() missing 1 required" in fault(path)


def test_a_task_that_cannot_be_told_the_seed_is_told(tmp_path: Path) -> None:
    text = MINE + "    @property\n    def seed(self): return 1\n"
    assert "it cannot be made: AttributeError" in fault(write(tmp_path, text))


def test_an_error_of_ours_stays_what_it_is(tmp_path: Path) -> None:
    text = """
        from paceline.data.open import open_data
        open_data("mnits")
    """
    with pytest.raises(DataError, match="did you mean 'mnist'"):
        load(write(tmp_path, text))
    assert not [name for name in sys.modules if name.startswith("paceline_task_")]


def test_a_class_that_is_not_there_brings_a_suggestion(tmp_path: Path) -> None:
    path = write(tmp_path, MINE)
    assert "unknown class 'Mien': did you mean 'Mine'? Known: Mine." in fault(path, "Mien")
    empty = write(tmp_path, "x = 1", "empty.py")
    assert f"'{empty}' has no class 'Mine', nor any other task" in fault(empty)


@pytest.mark.parametrize(
    "text",
    [
        "Mine = 3",
        "class Mine: pass",
        "class Mine:\n    def model(self): ...",
        "from paceline.tasks.base import Task\nclass Mine(Task): pass",
        "def Mine(): ...",
    ],
)
def test_what_is_not_a_task_is_told(tmp_path: Path, text: str) -> None:
    assert "'Mine' is not a task" in fault(write(tmp_path, text))


def test_a_module_or_file_that_is_gone_since_the_spec_was_made_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, MINE)
    spec = RunSpec(task=f"{path}:Mine")
    path.unlink()
    with pytest.raises(TaskError, match="there is no file"):
        load_task(spec)
    spec = RunSpec.model_construct(task="no_such_package.below:Mine", data=None, data_dir=None)
    with pytest.raises(TaskError, match=r"there is no module 'no_such_package\.below'"):
        load_task(spec)
