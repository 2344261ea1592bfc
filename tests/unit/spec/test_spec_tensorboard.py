"""What --tensorboard and --profile-steps take."""

from __future__ import annotations

from pathlib import Path

import pytest

import paceline
from paceline.errors import SpecError
from paceline.spec import RunSpec, check


@pytest.mark.parametrize(
    ("text", "steps"),
    [("10:20", (10, 20)), ("7", (7, 7)), ("0:5", None), ("20:10", None), ("a:b", None), ("", None)],
)
def test_steps_that_are_profiled(text: str, steps: tuple[int, int] | None) -> None:
    assert check.profiled(text) == steps


def test_every_fault_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="as in 10:20") as wrong:
        RunSpec(profile_steps="x")
    assert "needs --tensorboard" in str(wrong.value)
    with pytest.raises(SpecError, match="at most 1000"):
        RunSpec(profile_steps="1:5000", tensorboard="board")
    monkeypatch.setattr(check, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"pip install 'paceline\[tensorboard\]'"):
        RunSpec(tensorboard="board")


def test_a_folder_that_cannot_be_made_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    asked = str(tmp_path / "file" / "events")
    with pytest.raises(SpecError, match="--tensorboard: cannot make folder"):
        paceline.fit("softmax", steps=1, tensorboard=asked, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
