"""The report as Markdown, for papers and notes: charts are their sentences and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paceline.report.charts.chart import Chart
from paceline.report.layout import Column
from paceline.report.page.document import Document, Grid, Listing, Part, Words

MARK = "<!-- Paceline report -->"  # by which one is known


def as_markdown(document: Document) -> str:
    lines = [MARK, f"# {_text(document.title)}", f"*{_text(document.made)}*"]
    one = len(document.chapters) == 1
    for chapter in document.chapters:
        if not one:
            lines.append(f"## {_text(chapter.title)}")
        lines.append(f"*{_text(chapter.question)}*")
        lines += [f"**{_text(sentence)}**" for sentence in chapter.answer]
        for section in chapter.sections:
            lines.append(f"{'##' if one else '###'} {_text(section.title)}")
            for part in section.parts:
                lines += _part(part, 3 if one else 4)
    return "\n\n".join(lines) + "\n"


def _part(part: Part, level: int) -> list[str]:
    match part:
        case Words():
            text = f"**{_text(part.text)}**" if part.strong else _text(part.text)
            mark = "1." if part.numbered else "-"
            items = "\n".join(f"{mark} {_text(item)}" for item in part.items)
            return [each for each in (text, items) if each]
        case Grid():
            table = [_table(part.shown), *([_text(part.note)] if part.note else [])]
            return [f"*{_text(part.caption)}*", *table]
        case Listing():
            fence = "`" * (max(map(len, re.findall(r"`+", part.text)), default=2) + 1)
            fence = max(fence, "```", key=len)
            return [_text(part.caption) + ":", f"{fence}{part.language}\n{part.text}{fence}"]
        case Chart():
            told = [f"{'#' * level} {_text(part.title)}", _text(part.says)]
            return [*told, *([_table(part.table)] if part.table else [])]


def _table(columns: Sequence[Column]) -> str:
    heads = [f"{c.title} ({c.unit})" if c.unit else c.title for c in columns]
    rules = [":---" if column.words else "---:" for column in columns]
    rows = [heads, *zip(*(column.cells for column in columns), strict=True)]
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([lines[0], f"| {' | '.join(rules)} |", *lines[1:]])


def _text(text: str) -> str:
    """As it is, whatever marks are in it."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text.replace("\n", " "))


def _cell(text: str) -> str:
    return _text(text) or " "
