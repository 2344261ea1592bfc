"""`paceline convert`: text to shards of sparse rows, once; training then maps them into memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli.flags import Debug, Json, Quiet
from paceline.cli.telling import remark, show_json
from paceline.data.shape import CLICK_FEATURES
from paceline.data.sparse.catalog import FORMATS
from paceline.errors import RequestError
from paceline.report.words import duration

if TYPE_CHECKING:
    from paceline.data.sparse.convert import Progress

READING = "How lines are read"
EVERY = 0.5  # seconds between lines of progress

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="plain, gzip or zstd")]
To = Annotated[Path, typer.Option("--to", metavar="DIR", help="folder for the shards")]
Format = Annotated[
    str, typer.Option("--format", metavar="NAME", help="one of: " + ", ".join(FORMATS))
]
Features = Annotated[
    int, typer.Option("--features", metavar="INT", help="how many numbers features may have")
]
Test = Annotated[
    list[Path] | None,
    typer.Option("--test", metavar="FILE", help="rows to test with; may be given again"),
]
TestShare = Annotated[
    float, typer.Option("--test-share", metavar="NUMBER", help="share of rows to test with instead")
]
Malformed = Annotated[
    float,
    typer.Option("--malformed", metavar="NUMBER", help="share of lines that may be no rows"),
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="NAME", help="column or field", rich_help_panel=READING),
]


Categories = Annotated[
    str | None,
    typer.Option(
        "--categories",
        metavar="NAMES",
        help="csv: columns whose values are names; all others where no columns are named",
        rich_help_panel=READING,
    ),
]
Counts = Annotated[
    str | None,
    typer.Option(
        "--counts",
        metavar="NAMES",
        help="csv: columns that count something",
        rich_help_panel=READING,
    ),
]
Numbers = Annotated[
    str | None,
    typer.Option(
        "--numbers",
        metavar="NAMES",
        help="csv: columns whose values are used as they are",
        rich_help_panel=READING,
    ),
]
Crosses = Annotated[
    str | None,
    typer.Option(
        "--cross",
        metavar="NAMES",
        help="csv, criteo: pairs of columns that make features together, such as site:hour",
        rich_help_panel=READING,
    ),
]
Hashed = Annotated[
    bool, typer.Option("--hashed", help="libsvm: indices of any size", rich_help_panel=READING)
]
Text = Annotated[
    str | None,
    typer.Option("--text", metavar="NAME", help="json: field", rich_help_panel=READING),
]
Above = Annotated[
    float | None,
    typer.Option(
        "--above",
        metavar="NUMBER",
        help="labels above it are 1 (default: labels are -1, 0 or 1)",
        rich_help_panel=READING,
    ),
]
Part = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="NAME",
        help="json: field that says 'test' of rows to test with",
        rich_help_panel=READING,
    ),
]
Pairs = Annotated[
    bool,
    typer.Option(
        "--pairs/--no-pairs", help="json: pairs of words are features", rich_help_panel=READING
    ),
]


def convert(
    files: Files,
    *,
    to: To,
    format: Format,
    features: Features = CLICK_FEATURES,
    test: Test = None,
    test_share: TestShare = 0.0,
    malformed: Malformed = 0.01,
    label: Label = None,
    categories: Categories = None,
    counts: Counts = None,
    numbers: Numbers = None,
    cross: Crosses = None,
    hashed: Hashed = False,
    text: Text = None,
    above: Above = None,
    part: Part = None,
    pairs: Pairs = True,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Convert text to shards of sparse rows. Goes on where it was broken off.

    $ paceline convert day_0.gz day_1.gz --format criteo --to clicks --test-share 0.1
    $ paceline convert visits.csv --format csv --label bought --cross site:hour --to visits
    $ paceline run --task sparse-logreg --data shards --data-dir clicks --strategy hogwild -n 2
    """
    from paceline.data.sparse.formats import Asked, request_for

    asked = Asked(
        format=format,
        features=features,
        label=label,
        categories=_listed(categories),
        counts=_listed(counts),
        numbers=_listed(numbers),
        crosses=tuple(_pair(name) for name in _listed(cross)),
        hashed=hashed,
        text=text,
        above=above,
        part=part,
        pairs=pairs,
        test_share=test_share,
        malformed=malformed,
    )
    request = request_for(asked, files, test or ())

    from paceline.data.sparse.convert import convert as convert_rows
    from paceline.measure.malloc import keep_large_blocks

    keep_large_blocks()  # as many pieces of text, and rows made of them, come as go
    began = time.monotonic()
    telling = _Telling(began, quiet=quiet or json)
    done = convert_rows(request, to, telling)
    found: dict[str, Any] = {
        "dir": str(to),
        "rows": {part: done.rows(part) for part in ("train", "test")},
        "features": done.features,
        "malformed": done.malformed,
        "faults": list(done.faults),
        "seconds": time.monotonic() - began,
    }
    if json:
        show_json(found)
        return
    for fault in done.faults:
        remark(fault)
    if not quiet:
        rows = found["rows"]
        typer.echo(
            f"{rows['train']:,} rows to train with and {rows['test']:,} to test with are in "
            f"'{to}'; {done.malformed:,} of {done.lines:,} lines were malformed."
        )


class _Telling:
    """How far it is, on standard error, now and then."""

    def __init__(self, began: float, *, quiet: bool) -> None:
        self._began = self._told = began
        self._quiet = quiet

    def __call__(self, now: Progress) -> None:
        clock = time.monotonic()
        if self._quiet or clock - self._told < EVERY:
            return
        self._told = clock
        spent = clock - self._began
        left = spent * (1 - now.share) / max(now.share - now.before, 1e-9)
        remark(
            f"{now.rows:,} rows, {now.read / spent:,.0f} a second, {duration(left)} left; "
            f"{now.malformed:,} malformed"
        )


def _listed(names: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if names else ()


def _pair(name: str) -> tuple[str, str]:
    first, colon, second = name.partition(":")
    if not colon or not first or not second:
        raise RequestError(f"--cross {name}: write two columns with a colon between, as a:b.")
    return first, second
