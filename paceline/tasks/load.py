"""Tasks by name: built in, or a class of the user's own."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from paceline.data.catalog import with_features
from paceline.errors import PacelineError, TaskError, unknown
from paceline.spec import RunSpec
from paceline.tasks.base import Task
from paceline.tasks.catalog import BUILT_IN


def load_task(spec: RunSpec) -> Task:
    """The spec's task, told which data and seed the spec asks for."""
    where, _, name = BUILT_IN.get(spec.task, spec.task).rpartition(":")
    module = _import_file(spec.task, where) if where.endswith(".py") else _import(spec.task, where)
    kind = _task_class(spec.task, module, name)
    with _blaming(spec.task):
        task = kind()
        told(task, spec)
    return task


def told(task: Task, spec: RunSpec) -> None:
    """Tell a task what the spec says of data and seed."""
    task.seed = spec.seed
    if spec.data is not None:
        task.data_name = spec.data
    if spec.data_dir is not None:
        task.data_dir = spec.data_dir
    if spec.features is not None:
        if not hasattr(task, "features"):
            raise TaskError(f"--features: task '{spec.task}' has no such choice; leave it out.")
        task.features = spec.features
        task.data_name = with_features(task.data_name, spec.features)


def _import(task: str, where: str) -> ModuleType:
    with _blaming(task):
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as wrong:
            # It may as well be a module that the task's own module looks for in vain.
            if wrong.name and f"{where}.".startswith(f"{wrong.name}."):
                raise TaskError(f"task '{task}': there is no module '{where}'.") from None
            raise


def _import_file(task: str, where: str) -> ModuleType:
    """The file as a module, read anew, under a name that is the same in every process."""
    path = Path(where).expanduser().resolve()
    if not path.is_file():
        raise TaskError(f"task '{task}': there is no file '{path}'.")
    name = f"paceline_task_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        with _blaming(task):
            found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _task_class(task: str, module: ModuleType, name: str) -> type[Task]:
    kind = getattr(module, name, None)
    if kind is None:
        raise TaskError(f"task '{task}': {_no_class(module, name)}")
    if not _is_task(kind):
        raise TaskError(
            f"task '{task}': '{name}' is not a task: "
            "it must be a class that has model(), and either extends Task or has data() too."
        )
    if issubclass(kind, Task):
        return cast(type[Task], kind)
    with _blaming(task):
        # A class of its own kind gets what it does not define, such as the loss, from Task.
        return cast(type[Task], type(name, (kind, Task), {"__module__": kind.__module__}))


def _is_task(kind: object) -> bool:
    if not isinstance(kind, type):
        return False
    if issubclass(kind, Task):
        return kind.model is not Task.model
    return callable(getattr(kind, "model", None)) and callable(getattr(kind, "data", None))


def _no_class(module: ModuleType, name: str) -> str:
    tasks = [known for known, thing in vars(module).items() if _is_task(thing)]
    if not tasks:
        return f"'{module.__file__}' has no class '{name}', nor any other task."
    return unknown("class", name, tasks)


@contextmanager
def _blaming(task: str) -> Iterator[None]:
    """Whatever the user's code raises becomes a TaskError that names the line it came from."""
    try:
        yield
    except PacelineError:
        raise
    except (Exception, SystemExit) as wrong:
        raise TaskError(f"task '{task}': {_told(wrong)}.") from wrong


def _told(wrong: BaseException) -> str:
    if isinstance(wrong, SyntaxError) and wrong.filename:
        return f"{wrong.filename} line {wrong.lineno} is not Python: {wrong.msg}"
    said = " ".join(f"{type(wrong).__name__}: {wrong}".split()).rstrip(":.")
    frames = [
        frame
        for frame in traceback.extract_tb(wrong.__traceback__)
        if frame.filename != __file__ and not frame.filename.startswith("<frozen importlib")
    ]
    if not frames:
        return f"it cannot be made: {said}"
    # The innermost line of the file where the user's code begins, not of a library it calls.
    line = [frame.lineno for frame in frames if frame.filename == frames[0].filename][-1]
    return f"{frames[0].filename} line {line} raises {said}"
