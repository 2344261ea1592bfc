"""What --tensorboard and --profile-steps take."""

from __future__ import annotations

import pytest

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
