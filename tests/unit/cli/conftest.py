"""A run that ends at once: what the command line does before and after it is what is tested."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paceline.cli.main import main
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder


@dataclass
class FakeRun:
    summary: dict[str, Any]

    @property
    def status(self) -> str:
        return str(self.summary["status"])


@dataclass
class FakeApi:
    """Stands for paceline.api: records what it was asked, answers or fails as it is told."""

    status: str = "done"
    error: BaseException | None = None
    specs: list[RunSpec] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)

    def execute(self, spec: RunSpec, *, out: Path, **asked: Any) -> FakeRun:
        self.specs.append(spec)
        self.asked = {"out": out, **asked}
        if self.error:
            raise self.error
        folder = RunFolder.create(out, spec)
        folder.write_live(self.status, os.getpid(), [])
        summary = self._summary(folder, spec)
        folder.write_result(summary)
        return FakeRun(summary)

    def launch_script(
        self, spec: RunSpec, script: Path, arguments: list[str], **asked: Any
    ) -> FakeRun:
        run = self.execute(spec, **asked)
        self.asked |= {"script": script, "arguments": arguments}
        return run

    def _summary(self, folder: RunFolder, spec: RunSpec) -> dict[str, Any]:
        rate = 30_000.0 * spec.workers**0.5
        worker = {"role": "worker-0", "samples": 60_000, "steps": 300, "accuracy": 0.9231}
        worker["host"] = "here"
        return {
            "run": folder.name,
            "dir": str(folder.path),
            "status": self.status,
            "spec": spec.model_dump(),
            "throughput": {"samples_per_second": rate, "low": rate * 0.99, "high": rate * 1.01},
            "seconds": {"total": 3.4, "train": 2.1},
            "quality": {"accuracy": 0.9231},
            "roles": [worker],
            "verdict": {"bottleneck": "compute", "sentence": "compute: it computes.", "advice": []},
            "events": [],
            "faults": [],
        }


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()
    monkeypatch.setattr("paceline.api.execute", fake.execute)
    monkeypatch.setattr("paceline.api.launch_script", fake.launch_script)
    return fake


@dataclass(frozen=True)
class Told:
    code: int
    out: str
    err: str


@pytest.fixture
def paceline(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Told]:
    """The command line in a terminal of 80 columns, with its runs in a folder of its own."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PACELINE_RUNS", str(tmp_path / "runs"))

    def call(*arguments: str) -> Told:
        code = main(list(arguments))
        told = capsys.readouterr()
        return Told(code, told.out, told.err)

    return call
