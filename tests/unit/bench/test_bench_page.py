from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import catalog
from bench.catalog import BENCHES, EXCHANGE, MODELS, PEERS, Bar
from bench.page import PAGE, page, section
from bench.tables import ratios, spread, table, wanted

RATES = {"independent": [100.0, 200.0, 400.0], "raw DDP": [50.0, 50.0, 50.0]}
MACHINE = {
    "date": "2026-11-16",
    "host": {"cores": 2, "cpu": "A Processor", "memory_bytes": 24 << 30},
    "versions": {"python": "3.11.7", "torch": "2.13.0", "tensorflow": "2.21.0", "numpy": None},
}


def a_record(repeats: int = 3) -> dict[str, Any]:
    return {"machine": MACHINE, "repeats": repeats, "samples_per_second": {"softmax": RATES}}


def test_a_ratio_is_of_the_same_repeat() -> None:
    assert ratios(RATES, "independent", "raw DDP") == [2.0, 4.0, 8.0]


def test_spread_is_median_and_range() -> None:
    assert spread([3000.0, 1000.0, 2000.0], ",.0f") == "2,000 (1,000 – 3,000)"


def test_table_has_a_column_for_each_that_was_measured() -> None:
    lines = table(MODELS["softmax"], RATES, ("independent", "raw DDP", "Ray actor PS"))
    assert lines[0] == "### softmax [200], 2 workers"
    assert lines[2] == "| | samples/s | of `independent` | of raw DDP |"
    assert lines[3] == "|---|---:|---:|---:|"
    assert lines[4].startswith("| independent | 200 (100 – 400) | 1.00 (1.00 – 1.00) | 4.00 (")
    assert len({line.count("|") for line in lines[2:-1]}) == 1


@pytest.mark.parametrize(("least", "verdict"), [(4.0, "met"), (4.1, "not met")])
def test_a_bar_is_met_by_the_median(least: float, verdict: str) -> None:
    line = wanted({"softmax": RATES}, [Bar("independent", "softmax", "raw DDP", least)])[2]
    assert line == (
        f"| independent on softmax: {least}x raw DDP | 4.00 (2.00 – 8.00) | {verdict} |"
    )


@pytest.mark.parametrize(
    "bar", [Bar("independent", "mlp", "raw DDP", 1), Bar("ps-sync shm", "softmax", "raw DDP", 1)]
)
def test_a_bar_that_was_not_measured_is_left_out(bar: Bar) -> None:
    assert wanted({"softmax": RATES}, [bar]) == []


@pytest.mark.parametrize("bench", BENCHES)
def test_bars_are_of_contenders_and_models_there_are(bench: catalog.Bench) -> None:
    names = {contender.name for contender in bench.contenders}
    assert set(bench.against) <= names
    for bar in bench.bars:
        assert {bar.name, bar.against} <= names
        assert bar.model in bench.models
    for contender in bench.contenders:
        assert contender.steps.keys() == set(bench.models)


def test_section_tells_command_repeats_and_machine() -> None:
    text = "\n".join(section(PEERS, a_record(repeats=7)))
    assert text.startswith("## Peers\n")
    assert "`make bench-peers`, 7 interleaved repeats. 2026-11-16: 2 cores of A Processor" in text
    assert "tensorflow 2.21.0" in text


def test_page_has_a_section_for_each_bench_with_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "RESULTS", tmp_path)
    assert "## " not in page()
    PEERS.results.write_text(json.dumps(a_record()))
    assert "## Peers" in page()
    assert "## Strategies" not in page()
    EXCHANGE.results.write_text(json.dumps(a_record()))
    assert page().index("## Strategies") < page().index("## Peers")


def test_the_page_is_what_the_results_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "`python -m bench.page` writes it"
