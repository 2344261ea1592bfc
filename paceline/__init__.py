"""Paceline: train on many workers, measure what that bought, learn what holds it back."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.api import Run, fit, resume, scale
    from paceline.data.arrays import Arrays, FromTorch
    from paceline.data.base import Data
    from paceline.errors import PacelineError, RequestError, RunFailed, SpecError
    from paceline.spec import RunSpec
    from paceline.tasks.base import Task
    from paceline.worker.parallel import parallel

__version__ = "0.1.0"

# Imported when first used: `paceline --help` and the supervisor must not wait for torch.
_HOMES = {
    "Arrays": "paceline.data.arrays",
    "Data": "paceline.data.base",
    "FromTorch": "paceline.data.arrays",
    "PacelineError": "paceline.errors",
    "RequestError": "paceline.errors",
    "Run": "paceline.api",
    "RunFailed": "paceline.errors",
    "RunSpec": "paceline.spec",
    "SpecError": "paceline.errors",
    "Task": "paceline.tasks.base",
    "fit": "paceline.api",
    "parallel": "paceline.worker.parallel",
    "resume": "paceline.api",
    "scale": "paceline.api",
}

__all__ = [
    "Arrays",
    "Data",
    "FromTorch",
    "PacelineError",
    "RequestError",
    "Run",
    "RunFailed",
    "RunSpec",
    "SpecError",
    "Task",
    "fit",
    "parallel",
    "resume",
    "scale",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'paceline' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
