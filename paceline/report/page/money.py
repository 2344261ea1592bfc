"""What runs and sweeps cost, on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.report.charts.chart import Chart
from paceline.report.charts.pareto import pareto
from paceline.report.costs import Costs, Priced, Stand, as_object, price_run, price_sweep
from paceline.report.prices import PriceBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """The machines that runs stand for, and what these cost."""

    book: PriceBook
    stand: Stand

    def sweep(self, summary: Mapping[str, Any]) -> Chart | None:
        """Of a sweep's cells."""
        return self._chart(price_sweep(summary, self.stand), summary["target"])

    def runs(
        self, runs: Sequence[tuple[Mapping[str, Any], Mapping[str, float | None]]]
    ) -> Chart | None:
        """Of runs, by their summaries and figures."""
        return self._chart([price_run(*each, self.stand) for each in runs], None)

    def _chart(self, choices: Sequence[Priced], target: Mapping[str, Any] | None) -> Chart | None:
        if not choices:
            return None
        return pareto(as_object(Costs(choices=tuple(choices), book=self.book, target=target)))
