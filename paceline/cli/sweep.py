"""`paceline sweep`: a study's runs, interleaved and repeated, and what they say together."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import env
from paceline.cli.codes import FAILED, INTERRUPTED
from paceline.cli.flags import Debug, Json, Out, Quiet, field_value, spec_flags
from paceline.cli.telling import observer, remark, show, show_json
from paceline.errors import RequestError
from paceline.report.words import duration
from paceline.spec import RunSpec
from paceline.study.cells import Plan, plan
from paceline.study.read import read_study, ready_names, ready_study, with_fields
from paceline.study.study import Study

if TYPE_CHECKING:
    from paceline.store.sweeps import SweepFolder, Trial
    from paceline.sweeps import Standing
    from paceline.types import Observer

STUDY = "What is compared"
WHOLE = ("inject", "data_dir")  # may have commas in them

StudyFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STUDY.toml]",
        help="a study of your own; flags override it. Any flag of a run may have several values, "
        "between commas",
    ),
]
Ready = Annotated[
    str | None,
    typer.Option(
        "--study",
        metavar="NAME",
        help=f"a ready-made study ({', '.join(ready_names())})",
        rich_help_panel=STUDY,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        metavar="INT",
        help="how often each cell is run, in blocks of all cells (default: 3)",
        rich_help_panel=STUDY,
    ),
]
Hold = Annotated[
    str | None,
    typer.Option(
        "--hold",
        metavar="NAME",
        help="which batch is the same for any number of workers: 'batch', that of each, or "
        "'global-batch', that of all together (default: batch)",
        rich_help_panel=STUDY,
    ),
]
Aim = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="METRIC=VALUE",
        help="what time is taken to, such as accuracy=0.97 or loss=0.1; nobody stops there "
        "(default: the best that all reach)",
        rich_help_panel=STUDY,
    ),
]
OrderSeed = Annotated[
    int | None,
    typer.Option(
        "--order-seed",
        metavar="INT",
        help="decides the order of runs (default: 0)",
        rich_help_panel=STUDY,
    ),
]
SkipInvalid = Annotated[
    bool,
    typer.Option(
        "--skip-invalid", help="leave out cells that cannot be run", rich_help_panel=STUDY
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="SWEEP",
        help="go on with a sweep: 'last', its folder, or a unique part of its name",
        rich_help_panel=STUDY,
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="begin anew, also if the same sweep was begun before",
        rich_help_panel=STUDY,
    ),
]
Retry = Annotated[
    bool,
    typer.Option("--retry-failed", help="run failed cells again", rich_help_panel=STUDY),
]


@spec_flags(*RunSpec.model_fields)
def sweep(
    file: StudyFile = None,
    *,
    given: dict[str, Any],
    study: Ready = None,
    repeats: Repeats = None,
    hold: Hold = None,
    target: Aim = None,
    order_seed: OrderSeed = None,
    skip_invalid: SkipInvalid = False,
    resume: Resume = None,
    fresh: Fresh = False,
    retry_failed: Retry = False,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run all combinations that a study names, in turns and repeated, and say what differs.

    $ paceline sweep --study strong --task lenet --workers 1,2
    $ paceline sweep --strategy ps-sync,ps-async --workers 2 --repeats 6
    $ paceline sweep study.toml --epochs 1
    """
    root = out or env.runs_dir()
    if resume is not None:
        asked = (file, study, repeats, hold, target, order_seed, *given.values())
        if any(each is not None for each in asked) or fresh or skip_invalid:
            raise RequestError(
                "--resume goes on with what the sweep was begun with; "
                "of other flags only --retry-failed and those of what is told go with it."
            )
        from paceline.store.sweeps import SweepFolder

        folder = SweepFolder.find(root, resume)
    else:
        more = {"repeats": repeats, "hold": hold, "order_seed": order_seed}
        wanted = _study(file, study, given, more, target)
        cells = plan(wanted)
        if not skip_invalid or not cells.cells:
            cells.insist()
        folder = _folder(wanted, cells, root, fresh)
    _carry_out(folder, json=json, quiet=quiet, again=retry_failed)


def _study(
    file: Path | None,
    name: str | None,
    given: dict[str, Any],
    more: dict[str, Any],
    target: str | None,
) -> Study:
    """What the file or the ready-made study says, with flags on top."""
    if file and name:
        raise RequestError(f"give a study's file or --study {name}, not both.")
    told = read_study(file) if file else ready_study(name) if name else Study()
    told = with_fields(told, {field: _values(field, value) for field, value in given.items()})
    said = {key: value for key, value in more.items() if value is not None}
    if target is not None:
        said["target"] = _target(target)
    told = replace(told, **said)
    if not told.vary and not told.baseline:
        raise RequestError(
            "nothing varies: give a flag several values, such as --workers 1,2, or a study: "
            f"--study {', '.join(ready_names())}."
        )
    return told


def _values(field: str, value: Any) -> Any:
    """`1,2` as a tuple of two; all else as it is."""
    if not isinstance(value, str) or field in WHOLE or "," not in value:
        return value
    parts = dict.fromkeys(part.strip() for part in value.split(","))
    return tuple(field_value(field, part) for part in parts)


def _target(text: str) -> tuple[str, float]:
    metric, _, value = text.partition("=")
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise RequestError(f"--target {text}: say a metric and a number, such as accuracy=0.97.")
    return metric, found


def _folder(study: Study, cells: Plan, root: Path, fresh: bool) -> SweepFolder:
    from paceline import sweeps

    before = None if fresh else sweeps.unfinished(study, cells, root)
    if before:
        remark(f"going on with {before.name}; --fresh begins anew.")
    return before or sweeps.begin(study, cells, root)


def _carry_out(folder: SweepFolder, *, json: bool, quiet: bool, again: bool) -> None:
    from paceline import sweeps
    from paceline.report.sweep_tables import sweep_report
    from paceline.report.swept import summarise_sweep

    whole = sweeps.carry_out(folder, _Telling(quiet=quiet), again=again)
    summary = summarise_sweep(folder)
    if json:
        show_json(summary)
    elif not quiet:
        remark("")
        show(sweep_report(summary))
    if not whole:
        remark(f"stopped; paceline sweep --resume {folder.name} goes on, as does the same command.")
        raise typer.Exit(INTERRUPTED)
    if summary["trials"]["failed"]:
        raise typer.Exit(FAILED)


class _Telling:
    """A line as each run begins; what fails is told at once."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def begin(self, standing: Standing) -> Observer:
        if not self._quiet:
            soon = "" if standing.left is None else f", about {duration(standing.left)} left"
            at = f"{standing.number} of {standing.of}"
            remark(f"{at}: {standing.cell} (repeat {standing.repeat + 1}){soon}")
        return observer(quiet=self._quiet)

    def end(self, trial: Trial) -> None:
        if trial.fault:
            remark(f"failed: {trial.fault}")
