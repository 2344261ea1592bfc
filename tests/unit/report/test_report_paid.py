from __future__ import annotations

from report_samples import a_role, a_summary

from paceline.report.paid import what_paid

SINGLE = a_summary("single", rate=30_000.0)


def test_what_is_faster_comes_first_with_its_interval_and_both_accuracies() -> None:
    told = what_paid(
        [SINGLE, a_summary("ps-sync", rate=27_000.0), a_summary(rate=42_000.0)], SINGLE
    )
    assert told == (
        "Asynchronous training with 3 workers was 1.40x (1.38–1.42) as fast as one worker, "
        "with accuracy 92.31 % against 92.31 %; "
        "synchronous training with 3 workers was 0.90x (0.89–0.91) as fast as one worker, "
        "with accuracy 92.31 % against 92.31 % "
        "(exchange and waiting took 45 % of its workers' time)."
    )


def test_one_worker_being_fastest_is_a_result() -> None:
    told = what_paid([SINGLE, a_summary("ps-sync", rate=20_000.0)], SINGLE)
    assert told.startswith("One worker is the fastest for this model here; synchronous training")


def test_within_the_interval_nothing_is_claimed() -> None:
    told = what_paid([SINGLE, a_summary("allreduce", rate=30_100.0)], SINGLE)
    assert "shows no difference in speed from one worker, 1.00x (0.99–1.02)" in told
    assert "fastest" not in told


def test_a_run_too_short_to_measure_is_called_that() -> None:
    short = a_summary("my-strategy", rate=None, quality={"accuracy": None})
    assert what_paid([SINGLE, short], SINGLE) == (
        "My-strategy with 3 workers was too short to measure."
    )


def test_workers_that_recorded_no_phases_are_not_blamed() -> None:
    slow = a_summary("ps-sync", rate=10_000.0, roles=[a_role("worker-0", phases=None)])
    assert "waiting" not in what_paid([SINGLE, slow], SINGLE)
