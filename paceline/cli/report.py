"""`paceline report`: runs and sweeps as one page that opens anywhere."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import env
from paceline.cli.cost import Book, Each, MachineKind
from paceline.cli.flags import Debug, Json, Out, Quiet
from paceline.cli.telling import remark, show_json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.report.page.document import Document
    from paceline.report.page.money import Pricing

FORMS = "What is made"

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN…",
        help="runs and sweeps: 'last', a folder, or a unique part of a name",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE.html",
        help="the page (default: the first one's name, in this folder; none with --md, --csv or "
        "--png alone)",
        rich_help_panel=FORMS,
    ),
]
Markdown = Annotated[
    Path | None,
    typer.Option("--md", metavar="FILE", help="as Markdown too, for papers", rich_help_panel=FORMS),
]
Sheet = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="as CSV too, a row a run", rich_help_panel=FORMS),
]
Pictures = Annotated[
    Path | None,
    typer.Option(
        "--png",
        metavar="DIR",
        help="every chart as a picture too, for slides; needs Chromium or Chrome",
        rich_help_panel=FORMS,
    ),
]
Title = Annotated[
    str | None,
    typer.Option("--title", metavar="TEXT", help="what stands at the top", rich_help_panel=FORMS),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="replace files even if they are no reports",
        rich_help_panel=FORMS,
    ),
]
Open = Annotated[
    bool,
    typer.Option("--open", help="open the page in the browser", rich_help_panel=FORMS),
]


def report(
    names: Names,
    *,
    output: Page = None,
    md: Markdown = None,
    csv: Sheet = None,
    png: Pictures = None,
    title: Title = None,
    force: Force = False,
    open_: Open = False,
    machine: MachineKind = None,
    workers_per_machine: Each = None,
    prices: Book = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a report of runs and sweeps: one file with everything in it, that opens offline.

    The answer comes first, then charts, verdicts, and what it takes to do it again.

    $ paceline report last -o report.html
    $ paceline report strong-lenet --machine g3.4xlarge --open
    $ paceline report ps-sync ps-async --md runs.md --csv runs.csv
    """
    from paceline.report.page.build import build
    from paceline.store.lookup import locate

    root = out or env.runs_dir()
    paths = [locate(root, name, "run", "sweep") for name in dict.fromkeys(names)]
    page = output or (None if md or csv or png else Path(f"{paths[0].resolve().name}.html"))
    if open_ and page is None:
        raise RequestError("--open shows a page; say where it goes with -o.")
    _check(page, md, csv, force=force)
    if png:
        from paceline.report.page.picture import browser

        browser()  # before minutes of work
    tell = (lambda what: None) if quiet or json else remark
    document = build(
        paths,
        title,
        _pricing(machine, workers_per_machine, prices),
        tell if len(paths) > 1 or _large(paths[0]) else lambda what: None,
    )
    made = _write(document, page, md, csv, png, tell)
    if json:
        show_json(made)
    elif not quiet:
        for path in made.values():
            if path:
                typer.echo(path)
    if open_ and page:
        webbrowser.open(page.resolve().as_uri())


def _large(path: Path) -> bool:
    """Whether it takes so long that somebody wants to know how far it is."""
    from paceline.store.lookup import kind_of
    from paceline.store.sweeps import SweepFolder

    return kind_of(path) == "sweep" and len(SweepFolder(path).about()["cells"]) > 8


def _check(page: Path | None, md: Path | None, csv: Path | None, *, force: bool) -> None:
    """What stands there must be a report: they are made again often, and nothing else is lost."""
    from paceline.report.page import html, markdown, sheet

    marks = ((page, html.MARK), (md, markdown.MARK), (csv, sheet.MARK))
    given = [path.resolve() for path, _ in marks if path]
    if len(set(given)) < len(given):
        raise RequestError("-o, --md and --csv must name different files.")
    for path, mark in marks:
        if path is None:
            continue
        if path.is_dir():
            raise RequestError(f"'{path}' is a folder; say a file's name.")
        if not path.resolve().parent.is_dir():
            raise RequestError(f"there is no folder '{path.parent}' to write '{path.name}' to.")
        if path.exists() and not force and mark not in _head(path):
            raise RequestError(
                f"'{path}' is there already, and is no report of Paceline's; "
                "choose another name, or say --force to replace it."
            )


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(2000).decode("utf-8", errors="replace")
    except OSError as wrong:
        raise RequestError(
            f"cannot read '{path}': {(wrong.strerror or str(wrong)).lower()}."
        ) from None


def _pricing(machine: str | None, each: int | None, prices: Path | None) -> Pricing | None:
    """Machines of that kind; nothing where none is said."""
    from paceline.report.costs import Stand
    from paceline.report.page.money import Pricing
    from paceline.report.prices import price_book

    if machine is None:
        if each or prices:
            raise RequestError("--workers-per-machine and --prices go with --machine.")
        return None
    book = price_book(prices or env.prices_file())
    return Pricing(book=book, stand=Stand(machine=book.machine(machine).kind, workers_each=each))


def _write(
    document: Document,
    page: Path | None,
    md: Path | None,
    csv: Path | None,
    png: Path | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Each file whole or not at all."""
    from paceline.report.page.html import as_html
    from paceline.report.page.markdown import as_markdown
    from paceline.report.page.picture import as_pictures
    from paceline.report.page.sheet import as_csv
    from paceline.store.atomic import write_atomic

    for path, form in ((page, as_html), (md, as_markdown), (csv, as_csv)):
        if path:
            write_atomic(path, form(document))
    if png:
        as_pictures(document, png, lambda name: tell(f"drawing {name}"))
    told = {"page": page, "md": md, "csv": csv, "png": png}
    return {form: str(path) if path else None for form, path in told.items()}
