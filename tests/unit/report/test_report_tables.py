from __future__ import annotations

from pathlib import Path

import pytest
from report_samples import a_gpu, a_host, a_role, a_summary, gave
from rich.console import RenderableType

from paceline.report.beside import beside_published
from paceline.report.tables import (
    comparison,
    header,
    headline,
    render,
    report,
    run_table,
    runs_table,
)
from paceline.store.listing import RunEntry

SINGLE = a_summary("single", rate=29_000.0)
THREE = [SINGLE, a_summary("ps-sync", rate=26_100.0), a_summary("ps-async")]
ENTRY = RunEntry(
    name="20261115-215038-softmax-ps-async-3w",
    path=Path("runs/20261115-215038-softmax-ps-async-3w"),
    state="done",
    task="/home/me/models/mine.py:Mine",
    strategy="ps-async",
    workers=3,
    samples_per_second=41_230.4,
    accuracy=0.9231,
    seconds=7.43,
)
FAULTS = [
    {"time": 3.04, "role": "worker-1", "what": "killed", "injected": True, "seconds": 0.456},
    {"time": 12.3, "role": "server-0", "what": "frozen", "injected": False, "seconds": None},
]
HARMED = a_summary(roles=[a_role("worker-0"), a_role("worker-1", restarts=2)], faults=FAULTS)
OVER_TCP = [
    a_role(f"worker-{i}", traffic=[gave("server-0", 7.1), gave("server-1", 8.25)]) for i in (0, 1)
]
SERVED = [a_role(f"server-{i}", traffic=[gave("worker-0", 3.0)]) for i in (0, 1)]
EVERYTHING = {
    "report": report(a_summary()),
    "host": report(a_summary(hosts=[a_host()])),
    "GPUs": report(a_summary(hosts=[a_host(gpus=[a_gpu(0), a_gpu(1)])])),
    "traffic": report(a_summary(roles=OVER_TCP + SERVED)),
    "faults": report(HARMED),
    "long run": report(
        a_summary(
            roles=[
                a_role("worker-0", samples=12_345_678_901, steps=987_654_321, sent_mb=7_654_321.0)
            ]
        )
    ),
    "balanced": report(
        a_summary(
            "ps-sync",
            roles=[
                a_role("worker-0", share={"mean": 0.6412, "last": 0.6406}),
                a_role("worker-1", share={"mean": 0.3588, "last": 0.3594}),
                a_role("server-0", inside="worker-0", holds_mb=0.25),
            ],
        )
    ),
    "comparison": comparison(THREE, SINGLE),
    "large speedup": comparison([SINGLE, a_summary(rate=41_230_000.0)], SINGLE),
    "beside": beside_published(THREE),
    "runs": runs_table([ENTRY, RunEntry(name="broken", path=Path("broken"), state="damaged")]),
}


@pytest.mark.parametrize("width", [80, 100, 120, 160])
@pytest.mark.parametrize("thing", EVERYTHING.values(), ids=EVERYTHING.keys())
def test_tables_fit_the_width_and_cut_nothing(thing: RenderableType, width: int) -> None:
    text = render(thing, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", [80, 160])
def test_every_number_of_a_role_is_shown_whole(width: int) -> None:
    text = render(run_table(a_summary()), width)
    for told in ("1,000,200", "5,001", "15,003", "92.27", "7.4", "61", "312", "157.0", "1.93"):
        assert told in text
    for share in ("4.7", "48.4", "14.1", "31.2", "1.6"):  # of PHASES, in percent
        assert share in text


def test_faults_have_a_table_of_their_own() -> None:
    text = render(report(HARMED), 160)
    assert "killed (injected)  worker-1   3.0             0.46" in text
    assert "frozen             server-0  12.3            never" in text
    assert "started again: worker-1 2 times" in text
    assert "recovered" not in render(report(a_summary()), 160)
    assert "started again" not in render(report(a_summary()), 160)


def test_hosts_have_a_table_of_their_own() -> None:
    text = render(report(a_summary(hosts=[a_host()])), 100)
    assert (
        "box       81       4          83             2           0      2.0" in text
    )  # usable cores
    assert "84.5 lo" in text
    assert "12.3 nvme0n1" in text
    nothing = {"pressure_pct": {}, "nics": [], "disks": [], "cores": [], "steal_pct": None}
    unknown = nothing | {"swapped_in_mb_s": None, "swapped_out_mb_s": None}
    assert "box" in render(report(a_summary(hosts=[a_host(**unknown)])), 80)
    assert "box" not in render(report(a_summary(hosts=[])), 80)


def test_gpus_tell_their_clocks() -> None:
    unknown = a_gpu(1, utilisation_pct=None, sm_clock_pct=None, roles=[], slowed_pct={})
    text = render(report(a_summary(hosts=[a_host(gpus=[a_gpu(0), unknown])])), 120)
    assert "0 Tesla V100-SXM2-16GB  worker-0    88  12,345         85            95    214" in text
    assert "power" in text


def test_who_sent_what_where_a_worker_has_several_peers() -> None:
    text = render(report(a_summary(roles=OVER_TCP + SERVED)), 100)
    assert "worker-1            –          7.1          8.2" in text
    assert "to worker-0" in text
    inside = [*OVER_TCP, a_role("server-0", inside="worker-0", traffic=[gave("worker-0", 1)])]
    assert "MB sent" not in render(report(a_summary(roles=inside)), 100)
    alone = [a_role("worker-0", traffic=[gave("server-0", 1.0), gave("supervisor", 2.0)])]
    assert "MB sent" not in render(report(a_summary(roles=alone)), 100)
    many = [a_role("worker-0", traffic=[gave(f"server-{i}", 1.0) for i in range(20)])]
    assert "too wide to show" in render(report(a_summary(roles=many)), 100)


def test_a_wide_terminal_has_one_row_a_role_and_a_narrow_one_two_tables() -> None:
    assert render(run_table(a_summary()), 160).count("worker-0") == 1
    assert render(run_table(a_summary()), 80).count("worker-0") == 2


def test_shares_by_speed_are_shown_as_mean_and_at_the_end() -> None:
    role = a_role("worker-0", share={"mean": 0.6412, "last": 0.6306})
    for width in (80, 160):
        text = render(run_table(a_summary(roles=[role, a_role("server-0")])), width)
        assert all(told in text for told in ("share", "64.1", "at end", "63.1"))
    assert "share" not in render(run_table(a_summary()), 160)


def test_columns_that_say_nothing_are_left_out() -> None:
    text = render(run_table(a_summary("ps-sync")), 160)
    assert "staleness" not in text
    assert "wait" in text


def test_a_run_that_took_no_step_still_has_a_table() -> None:
    silent = a_role("worker-0", samples=None, steps=None, phases=None, accuracy=None)
    assert "worker-0" in render(report(a_summary(roles=[silent], rate=None)), 80)
    assert render(report(a_summary(roles=[])), 80)


def test_numbers_stand_right_aligned() -> None:
    roles = [a_role("worker-0", samples=7), a_role("worker-1", samples=1_000)]
    first, second = render(run_table(a_summary(roles=roles)), 160).splitlines()[-2:]
    assert first.index(" 7 ") + 2 == second.index("1,000") + len("1,000")


def test_header() -> None:
    assert header(a_summary()).plain == (
        "softmax on mnist · ps-async · 3 workers, 1 server · shm · batch 200 · lr 0.5"
    )
    scaled = a_summary("single", recipe={"peak": 0.0048990})
    scaled["spec"] |= {"accumulate": 4, "lr": 0.001, "warmup": 0.6, "decay": "linear"}
    assert header(scaled).plain.endswith(
        " · batch 200 x 4 · lr 0.001 scaled to 0.0049, warm-up 0.6 epochs, linear decay"
    )
    own = a_summary("single")
    own["spec"] |= {"task": "/home/me/mine.py:Mine", "batch": None, "lr": None}
    assert header(own).plain == "Mine · single · 1 worker"


def test_headline() -> None:
    assert headline(a_summary()).plain == (
        "41,230 samples/s (40,818 – 41,642), warm-up 120 steps dropped; accuracy 92.31 %; 7.4 s"
    )
    stopped = a_summary(
        status="stopped",
        quality={"accuracy": None},
        seconds={"total": 7.4, "to_target": 3.21},
        throughput={"samples_per_second": 10.0, "low": None, "high": None, "warmup_steps": 0},
    )
    assert headline(stopped).plain == "10 samples/s; target reached after 3.2 s; 7.4 s; stopped"


def test_the_report_tells_the_verdict_its_advice_and_what_happened() -> None:
    died = {"time": 3.21, "role": "worker-1", "kind": "died", "detail": "signal 9\nat step 7"}
    text = render(report(a_summary(events=[died])), 100)
    assert "cores: 3 workers and 1 server take turns on 2 cores" in text
    assert "· try --workers 1\n· or add a host" in text
    assert "3.2 s  worker-1  died: signal 9 at step 7" in text


def test_comparison_has_speedup_and_efficiency_with_intervals() -> None:
    base, sync, asynchronous = render(comparison(THREE, SINGLE), 120).splitlines()[-3:]
    assert base.split()[:2] == ["single", "1"]
    assert "1.00x " in base
    assert "100" in base.split()
    assert "0.90x (0.89–0.91)" in sync
    assert "30 (30–30)" in sync
    assert "1.42x (1.40–1.44)" in asynchronous
    assert "40,818 – 41,642" in asynchronous


def test_a_run_too_short_to_measure_is_compared_by_a_dash() -> None:
    last = render(comparison([SINGLE, a_summary(rate=None)], SINGLE), 80).splitlines()[-1]
    assert last.split()[2:5] == ["–", "–", "–"]


def test_runs_are_listed_with_what_came_of_them_and_what_is_wrong() -> None:
    broken = RunEntry(
        name="broken", path=Path("broken"), state="damaged", why="'broken/spec.json' is damaged."
    )
    text = render(runs_table([ENTRY, broken]), 120)
    assert ENTRY.name in text
    assert " Mine " in text
    assert "41,230" in text
    assert text.endswith("'broken/spec.json' is damaged.")
