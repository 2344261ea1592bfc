"""What --inject says: read as it was meant, or refused with all that is wrong with it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import SpecError
from paceline.spec import RunSpec
from paceline.spec.inject import LINES, SHAPES, Injection, inject_faults, injection, line_limits

ROLES = st.sampled_from(["worker-0", "worker-17", "server-3", "standby-1", "evaluator"])
ENDS = st.sampled_from(
    [("worker-0", "server-0"), ("worker-17", "server-3"), ("standby-1", "server-1")]
)
# As a person writes them: no more than nine places.
AMOUNTS = st.integers(1, 10**8).map(lambda thousandths: thousandths / 1000)


@st.composite
def injections(draw: st.DrawFn) -> Injection:
    kind = draw(st.sampled_from(sorted(SHAPES)))
    role, peer = "" if kind == "disk-full" else draw(ROLES), ""
    factor, step, lasts = 1.0, None, None
    at = draw(st.just(0.0) | AMOUNTS)
    text = f"{kind}:{role}" if role else kind
    if kind in LINES:
        role, peer = draw(ENDS)
        text = f"{kind}:{role}-{peer}"
    if kind == "slow":
        role = draw(st.sampled_from(["worker-0", "server-3"]))
        factor = 1 + draw(st.integers(1, 998_000)) / 1000
        text = f"slow:{role}x{factor:.3f}"
        factor = float(f"{factor:.3f}")
    if kind == "limit":
        role, megabits = draw(st.sampled_from(["worker-0", "server-3"])), draw(AMOUNTS)
        text = f"limit:{role}={megabits:.3f}mbit"
        return Injection(text=text, kind=kind, role=role, rate=megabits * 1e6 / 8)
    if kind in ("kill", "stop") and draw(st.booleans()):
        at, step = 0.0, draw(st.integers(1, 10**9))
    text += f"@step={step}" if step else f"@{at:.3f}s"
    if kind in LINES or (kind != "kill" and draw(st.booleans())):
        lasts = draw(AMOUNTS)
        text += f"+{lasts:.3f}s"
    what = {"text": text, "kind": kind, "role": role, "peer": peer, "factor": factor}
    return Injection(**what, at=at, step=step, lasts=lasts)


@given(injections())
def test_what_is_written_is_what_is_read(meant: Injection) -> None:
    assert injection(meant.text) == meant


@given(st.text(alphabet="killstopwedru-f:@+x=.0159s cut", max_size=30))
def test_whatever_else_is_written_is_read_or_refused(text: str) -> None:
    faults = inject_faults([text])
    assert all(fault.startswith(f"--inject {text}: ") and fault[-1] == "." for fault in faults)
    if not faults:
        read = injection(text)
        assert math.isfinite(read.at)
        assert 1 <= read.factor < math.inf


def test_a_limit_is_shared_out_among_connections() -> None:
    assert line_limits(["limit:server-1=80mbit"], 2, 2) == {(0, 1): 5e6, (1, 1): 5e6}
    both = line_limits(["limit:server-0=80mbit", "limit:worker-1=8mbit", "kill:worker-0@1s"], 2, 1)
    assert both == {(0, 0): 5e6, (1, 0): 1e6}
    assert line_limits([], 3, 1) == {}


def test_slow_needs_no_moment() -> None:
    assert injection("slow:worker-0x1.78") == Injection(
        text="slow:worker-0x1.78", kind="slow", role="worker-0", factor=1.78
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "kil:worker-0@3s",
            "did you mean 'kill'? Known: cut, disk-full, kill, limit, mute, slow, stop.",
        ),
        ("cut:worker-0@5s+2s", "'worker-0' is no connection"),
        ("cut:server-0-worker-0@5s+2s", "is no connection"),
        ("cut:worker-0-server-0@5s", "'' is no time it could last; say cut:worker-0-server-0@3s"),
        ("mute:worker-0-server-0@step=3+2s", "'step=3' is no moment"),
        ("cut:standby-1-server-0@1s+1s", "standby-1 has no connection to server-0"),
        ("kill:worker-0", "'' is no moment; say kill:ROLE@3s or kill:ROLE@step=50."),
        ("kill:worker-0@3", "'3' is no moment"),
        ("kill:worker-0@-3s", "'-3s' is no moment"),
        ("kill:worker-0@step=0", "'step=0' is no moment"),
        ("kill:worker-0@3s+1s", "a kill has no end"),
        ("kill:worker@3s", "'worker' is no role"),
        ("kill:@3s", "'' is no role"),
        ("stop:worker-0@3s+", "'' is no time it could last"),
        ("stop:worker-0@3s+0s", "'0s' is no time it could last"),
        ("slow:worker-0", "is no factor"),
        ("slow:worker-0x1", "'1' is no factor above 1"),
        ("slow:worker-0xinf", "'inf' is no factor above 1"),
        ("slow:standby-0x2", "only workers and servers can be slow, not standby-0"),
        ("limit:server-0", "'' is no speed"),
        ("limit:server-0=100", "'100' is no speed"),
        ("limit:server-0=0mbit", "'0mbit' is no speed"),
        ("limit:evaluator=1mbit", "only workers and servers can be limited, not evaluator"),
        ("limit:server-0=1mbit@3s", "it holds all the time"),
        ("slow:worker-0x2@step=5", "'step=5' is no moment"),
        ("disk-full", "'' is no moment; say disk-full@3s"),
        ("disk-full:worker-0@3s", "it has no role"),
    ],
)
def test_a_fault_is_a_sentence_with_the_remedy(text: str, told: str) -> None:
    with pytest.raises(SpecError) as wrong:
        injection(text)
    assert any(told in fault for fault in wrong.value.faults), wrong.value.faults


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"workers": 2, "inject": ["kill:worker-2@1s"]}, "it has worker-0 to worker-1."),
        ({"inject": ["slow:worker-1x2"]}, "no worker-1; it has worker-0."),
        ({"inject": ["kill:server-0@1s"]}, "no server-0; it has worker-0."),
        ({"inject": ["stop:evaluator@1s"]}, "no evaluator; it has worker-0."),
        (
            {"workers": 2, "servers": 2, "transport": "tcp", "inject": ["kill:server-2@1s"]},
            "it has worker-0 to worker-1, server-0 to server-1.",
        ),
        ({"workers": 2, "inject": ["kill:server-0@1s"]}, "say --transport tcp"),
        (
            {"workers": 2, "transport": "tcp", "inject": ["kill:standby-0@1s"]},
            "no standby-0; it has worker-0 to worker-1, servers.",
        ),
        (
            {"workers": 2, "transport": "tcp", "inject": ["cut:worker-2-server-0@1s+1s"]},
            "no worker-2",
        ),
        ({"workers": 2, "inject": ["limit:worker-0=1mbit"]}, "only connections to servers"),
        ({"inject": "kill:worker-0@1s"}, "must be a list of strings"),
        ({"inject": [3]}, "--inject 3: must be a string"),
    ],
)
def test_roles_that_the_run_does_not_have(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as wrong:
        RunSpec(**fields)
    (fault,) = wrong.value.faults
    assert told in fault


def test_every_fault_of_every_injection_at_once() -> None:
    with pytest.raises(SpecError) as wrong:
        RunSpec(workers=2, lr=-1, inject=["kill:bob@soon", "kill:worker-9@1s", "disk-ful@2s"])
    assert len(wrong.value.faults) == 5


def test_a_spec_keeps_them_in_order() -> None:
    asked = ["kill:worker-1@1s", "slow:worker-0x2", "kill:worker-1@1s"]
    spec = RunSpec(workers=2, inject=asked)
    assert spec.inject == tuple(asked)
    assert RunSpec(**spec.model_dump()) == spec
    tcp = RunSpec(workers=2, transport="tcp", inject=["kill:server-7@1s"])
    with pytest.raises(SpecError, match="no server-7"):  # once it is known how many there are
        tcp.with_(servers=2)
