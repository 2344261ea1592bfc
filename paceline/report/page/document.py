"""What a report says, before it has a form: chapters of sections of words, tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.report.charts.chart import Chart
from paceline.report.layout import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A paragraph; with `items` a list below it."""

    text: str = ""
    items: Sequence[str] = ()
    numbered: bool = False
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table: columns that say nothing are left out."""

    caption: str
    columns: Sequence[Column]
    note: str = ""

    @property
    def shown(self) -> list[Column]:
        return [column for column in self.columns if column.words or not column.empty]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return list(zip(*(column.cells for column in self.shown), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Text to be copied as it is."""

    caption: str
    text: str
    language: str = ""


Part = Words | Grid | Listing | Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`folded`: shown once it is asked for."""

    title: str
    parts: Sequence[Part]
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A run or a sweep: the question, the answer, and what it rests on.

    `rows` are its runs, a row each, for a sheet.
    """

    name: str
    title: str
    about: str
    question: str
    answer: Sequence[str]
    sections: Sequence[Section]
    rows: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    title: str
    made: str  # when, and with which version
    chapters: Sequence[Chapter]

    def charts(self) -> Iterator[Chart]:
        for chapter in self.chapters:
            for section in chapter.sections:
                yield from (part for part in section.parts if isinstance(part, Chart))


def section(title: str, *parts: Part | None, folded: bool = False) -> list[Section]:
    """The section, if anything is in it."""
    known = [part for part in parts if part is not None]
    return [Section(title=title, parts=known, folded=folded)] if known else []
