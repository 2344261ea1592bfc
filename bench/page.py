"""docs/BENCHMARKS.md, made from whatever results there are. Every bench ends by making it anew.

python -m bench.page
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.advised import body as advice_body
from bench.catalog import ADVICE, BENCHES, FINDINGS, MODELS, SPARSE, Bench
from bench.clicks.table import body as sparse_body
from bench.machine import sentence
from bench.tables import Rates, table, wanted
from bench.told import body as told_body
from paceline.store.atomic import write_atomic

PAGE = Path(__file__).parents[1] / "docs" / "BENCHMARKS.md"
HEAD = [
    "# Benchmarks",
    "",
    "Written by the benches; not edited by hand. Rates and ratios are medians, with the range over "
    "all repeats. Each section is one run that took every contender in turn, and a ratio is that "
    "of two contenders of the same repeat. Numbers of different sections are of different hours: "
    "they do not compare.",
    "",
]


# Those whose results are no rates of contenders.
BODIES = {SPARSE.name: sparse_body, ADVICE.name: advice_body}
BODIES |= dict.fromkeys((bench.name for bench in FINDINGS), told_body)


def body(bench: Bench, all_rates: dict[str, Rates]) -> list[str]:
    """A bench's tables: its models, then what was wanted."""
    lines = []
    for task, rates in all_rates.items():
        lines += table(MODELS[task], rates, bench.against)
    return lines + wanted(all_rates, bench.bars)


def section(bench: Bench, record: dict[str, Any]) -> list[str]:
    """A bench's part of the page."""
    told = f"`{bench.command}`, {record['repeats']} interleaved repeats. "
    lines = [f"## {bench.title}", "", told + sentence(record["machine"]), ""]
    if bench.about:
        lines += [bench.about, ""]
    if bench.name in BODIES:
        return lines + BODIES[bench.name](record)
    return lines + body(bench, record["samples_per_second"])


def page(benches: Iterable[Bench] = BENCHES) -> str:
    """The page's text, with a section for every bench that has results."""
    lines = list(HEAD)
    for bench in benches:
        if bench.results.is_file():
            lines += section(bench, json.loads(bench.results.read_text(encoding="utf-8")))
    return "\n".join(lines)


def write_page() -> None:
    write_atomic(PAGE, page())


if __name__ == "__main__":
    write_page()
