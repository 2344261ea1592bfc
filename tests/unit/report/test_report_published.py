from __future__ import annotations

import pytest
from report_samples import a_summary

from paceline.report.beside import beside_published
from paceline.report.published import published_softmax, softmax_source
from paceline.report.tables import render


def test_the_published_rows_are_all_there_as_printed() -> None:
    rows = {(row.strategy, row.role): row for row in published_softmax()}
    assert len(rows) == 9
    single = rows["single", "worker-0"]
    assert single.accuracy == pytest.approx(0.9263)
    assert (single.seconds, single.cpu_pct) == (121.079723, "23-24")
    server = rows["ps-sync", "server-0"]
    assert (server.accuracy, server.seconds, server.network_mbit_s) == (None, None, "25-26")


def test_the_source_is_told() -> None:
    assert softmax_source().startswith("Softmax (logistic) regression on MNIST")


def test_each_role_of_ours_has_the_published_one_beside_it() -> None:
    text = render(beside_published([a_summary("single"), a_summary("ps-async")]), 120)
    assert "92.27  92.63   7.4  121.1   61" in text
    assert "92.27  91.78   7.4   47.7   61" in text
    assert "338" in text  # 8 · (157.04 + 157.04) MB / 7.43 s


def test_a_strategy_nobody_published_stands_alone() -> None:
    text = render(beside_published([a_summary("allreduce")]), 120)
    assert "92.27" in text
    assert "2019" not in text
