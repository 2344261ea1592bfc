"""What a run stands on goes away under it: its folder, memory, the clock."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from faults_tools import CREWS, ENDS_WITHIN, harm, task

import paceline
from paceline.errors import PacelineError, StoreError
from paceline.store.folder import RunFolder

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

PACKAGE = Path(paceline.__file__).parent


@pytest.mark.matrix(2)
@pytest.mark.parametrize("crew", ["single", "allreduce", "ps-sync-shm", "ps-async-tcp"])
def test_a_folder_that_is_removed_is_missed_at_once(crew: str, runs: Path) -> None:
    removed: list[Path] = []

    def remove(_: dict[str, int]) -> None:
        removed.extend(runs.glob("[!.]*"))
        shutil.rmtree(removed[0])

    with harm(runs, remove) as watch, pytest.raises(StoreError) as wrong:
        paceline.fit(task("Patient"), epochs=100_000, out=runs, **CREWS[crew])
    assert watch.ended_within < ENDS_WITHIN
    assert str(removed[0]) in str(wrong.value)
    assert "\n" not in str(wrong.value)
    assert not removed[0].exists()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["allreduce", "ps-sync-shm", "ps-async-tcp"])
def test_a_role_without_memory_is_named_and_the_run_can_go_on(crew: str, runs: Path) -> None:
    how: dict[str, Any] = CREWS[crew] | {"steps": 300, "checkpoint_every": 0.1}
    with pytest.raises(PacelineError, match=r"worker-1.*memory") as wrong:
        paceline.fit(task("OutOfMemory"), out=runs, **how)
    assert wrong.value.exit_code == 1
    folder = RunFolder.find(runs, "last")
    assert folder.state == "failed"
    assert "memory" in list(folder.events())[-1].detail
    assert paceline.resume("last", out=runs).status == "done"


def test_only_names_and_stamps_come_from_a_clock_that_can_be_set_back() -> None:
    """Whatever is measured, or waited for, goes by one that only goes forward."""
    wall = re.compile(r"\btime\.time\(|datetime\.now\(|\btime_ns\(")
    found = [path for path in PACKAGE.rglob("*.py") if wall.search(path.read_text())]
    assert {path.relative_to(PACKAGE).as_posix() for path in found} == {
        *("report/page/build.py", "store/making.py", "store/origin.py", "transport/tls.py")
    }
