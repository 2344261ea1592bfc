"""The report as CSV, for spreadsheets: a row for each run."""

from __future__ import annotations

import csv
import io

from paceline.report.page.document import Document

FIRST = ("report", "cell", "repeat", "run")
MARK = ",".join(FIRST)  # by which one is known
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(document: Document) -> str:
    """Plain numbers; what is not known is left empty."""
    rows = [{"report": c.name, **row} for c in document.chapters for row in c.rows]
    names = list(dict.fromkeys([*FIRST, *(name for row in rows for name in row)]))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(row.get(name)) for name in names} for row in rows)
    return file.getvalue()


def _cell(value: object) -> object:
    """A spreadsheet would run a text that begins like a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
