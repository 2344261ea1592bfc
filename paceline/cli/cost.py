"""`paceline cost`: what runs cost, and which choices nobody should take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline import env
from paceline.cli.flags import Debug, Json, Out
from paceline.cli.telling import show, show_json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.report.costs import Costs, Stand
    from paceline.report.prices import PriceBook

PRICES = "What is paid"

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN…",
        help="runs or a sweep: 'last', a folder, or a unique part of a name; or the published "
        "table 'sentiment-2019'",
    ),
]
MachineKind = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="KIND",
        help="the kind of machine in the price book that the hosts of these runs stand for",
        rich_help_panel=PRICES,
    ),
]
Each = Annotated[
    int | None,
    typer.Option(
        "--workers-per-machine",
        metavar="INT",
        min=1,
        help="as if so many workers had a machine (default: a machine for each host there was)",
        rich_help_panel=PRICES,
    ),
]
Book = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE.toml",
        help="your own price book, on top of ours (default: $PACELINE_PRICES, or "
        "~/.config/paceline/prices.toml)",
        rich_help_panel=PRICES,
    ),
]


def cost(
    names: Names,
    *,
    machine: MachineKind = None,
    workers_per_machine: Each = None,
    prices: Book = None,
    out: Out = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell what runs cost, per run, per epoch and to the target, and what to take.

    $ paceline cost last --machine g3.4xlarge
    $ paceline cost strong-lenet --machine g3.4xlarge --workers-per-machine 1
    $ paceline cost sentiment-2019
    """
    from paceline.report.costs import PUBLISHED, Stand, as_object, costs_table, price_published
    from paceline.report.prices import price_book

    book = price_book(prices or env.prices_file())
    if names == [PUBLISHED]:
        costs = price_published(book)
    else:
        if machine is None:
            raise RequestError(
                "say which machine these runs stand for, with --machine; "
                f"known: {', '.join(sorted(book.machines))}; --prices adds your own."
            )
        stand = Stand(machine=book.machine(machine).kind, workers_each=workers_per_machine)
        costs = _costs(names, out or env.runs_dir(), book, stand)
    if json:
        show_json(as_object(costs))
    else:
        show(costs_table(costs))


def _costs(names: list[str], root: Path, book: PriceBook, stand: Stand) -> Costs:
    from paceline.report.costs import Costs, price_run, price_sweep
    from paceline.report.summary import summarise
    from paceline.report.swept import summarise_sweep
    from paceline.report.trials import figures
    from paceline.store.folder import RunFolder
    from paceline.store.lookup import kind_of, locate
    from paceline.store.sweeps import SweepFolder

    choices, targets = [], []
    for name in names:
        path = locate(root, name, "run", "sweep")
        if kind_of(path) == "sweep":
            swept = summarise_sweep(SweepFolder(path))
            choices += price_sweep(swept, stand)
            targets.append(swept["target"])
        else:
            folder = RunFolder.open(path)
            summary = summarise(folder)
            choices.append(price_run(summary, figures(folder, summary), stand))
    if not choices:
        raise RequestError(f"'{names[0]}' has no finished run yet, so there is nothing to pay for.")
    target = targets[0] if len(names) == 1 and targets else None
    return Costs(choices=tuple(choices), book=book, target=target)
