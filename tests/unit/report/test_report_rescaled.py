"""Scaling read out of published tables, and what in them makes one wonder."""

from __future__ import annotations

import pytest

from paceline.diagnose.alike import slower
from paceline.diagnose.amdahl import karp_flatt
from paceline.diagnose.usl import fit_usl
from paceline.report.published_clusters import click_runs, quality_runs
from paceline.report.published_cnns import (
    batch_speedups,
    clocked_gpus,
    imagenet_rates,
    linked_pairs,
)
from paceline.report.published_sentiment import machine_prices, preparations
from paceline.report.rescaled import (
    Program,
    batch_curves,
    grown_preparations,
    imagenet_curves,
    preparation_curves,
    surprises,
)


def program(model: str, implementation: str, machine: str, parameters_on: str) -> Program:
    return Program(
        model=model, implementation=implementation, machine=machine, parameters_on=parameters_on
    )


def test_the_tables_are_all_there() -> None:
    assert len(batch_speedups()) == 18
    assert len(imagenet_rates()) == 45
    assert len(linked_pairs()) == 5
    assert linked_pairs()[2].pix_4_5 is None
    assert machine_prices() == {"p2.xlarge": 0.90, "g3.4xlarge": 1.14, "g3.16xlarge": 4.56}
    assert [row.minutes for row in preparations()].count(None) == 3
    assert [run.seconds for run in quality_runs()][:2] == [57 * 60 + 8, 21 * 60 + 28]
    assert quality_runs()[8].seconds == 5 * 3600 + 24 * 60
    assert (quality_runs()[6].seconds, quality_runs()[6].fault[:6]) == (None, "failed")
    assert [run.sent_by_model_machine_mb_s for run in click_runs()] == [None, 156.18, 288.19]


def test_imagenet_speedups_are_over_the_same_program_on_one_gpu() -> None:
    curves = imagenet_curves()
    assert len(curves) == 20
    best = curves[program("inception3", "tf_cnn_benchmarks", "7gforce", "cpu")]
    assert best == pytest.approx({1: 1, 2: 1.508, 4: 3.020, 6: 4.487}, abs=1e-3)
    worst = curves[program("resnet50", "avolkov1", "7gforce", "gpu")]
    assert worst == pytest.approx({1: 1, 2: 1.150, 4: 0.574, 6: 0.371}, abs=1e-3)


def test_a_batch_of_32_is_slower_with_every_gpu() -> None:
    curves = batch_curves()
    assert set(curves) == {4096, 512, 32}
    law = fit_usl(list(curves[32]), list(curves[32].values()))
    assert law is not None
    assert (law.peak, law.best, law.caveats) == (1, 1, ())
    assert karp_flatt(curves[32][2], 2) > 1


def test_a_batch_of_512_is_slower_beyond_three_or_four() -> None:
    curve = batch_curves()[512]
    law = fit_usl(list(curve), list(curve.values()))
    assert law is not None
    assert max(curve, key=curve.__getitem__) == 3
    assert 3 < law.low < law.peak < law.high < 4
    assert law.caveats[0].startswith("the rate of 4 workers lies 26 % below the curve")


def test_weak_scaling_is_told_where_data_grew_with_machines() -> None:
    found = {(one.share_a_machine_pct, one.few, one.many): one for one in grown_preparations()}
    assert set(found) == {(12.5, 2, 4), (12.5, 2, 8), (12.5, 4, 8), (6.25, 4, 8)}
    assert found[12.5, 4, 8].speedup == pytest.approx(2 * 51 / 55)
    assert found[12.5, 4, 8].efficiency == pytest.approx(51 / 55)
    assert preparation_curves()[50] == pytest.approx({4: 4, 8: 4 * 51 / 30})


def test_gpus_of_a_kind_that_differ_are_found() -> None:
    rates = {str(gpu.gpu): gpu.images_per_second for gpu in clocked_gpus()}
    assert slower(rates) == pytest.approx({"1": 0.1568, "3": 0.0582}, abs=1e-4)


def test_what_makes_one_wonder_is_these_six() -> None:
    told = surprises()
    starts = [
        "cnn_batch_speedup_2017.csv, batch 4096: from 5 to 6 ",
        "cnn_cifar10_2017.csv, resnet44: from 1 to 2 ",
        "cnn_imagenet_2017.csv, inception3 by tf_cnn_benchmarks on az-2x-m60, parameters on",
        "sentiment_prep_2019.csv, 25 % of the data: from 2 to 4 ",
        "alexnet_clock_2017.csv, GPU 1: 15.7 % slower",
        "alexnet_clock_2017.csv, GPU 3: 5.8 % slower",
    ]
    assert len(told) == len(starts)
    for sentence, start in zip(told, starts, strict=True):
        assert sentence.startswith(start)
