"""The data sets by name. No torch here: specs are checked against this."""

from __future__ import annotations

from paceline.errors import DataError, unknown

BUILT_IN: dict[str, str] = {
    "mnist": "paceline.data.mnist",
    "fashion-mnist": "paceline.data.fashion_mnist",
    "synthetic": "paceline.data.synthetic",
    "clicks": "paceline.data.clicks",
    "shards": "paceline.data.shards",
}


def with_features(name: str, features: int | None) -> str:
    """The same data set with so many features, where that is to be chosen."""
    base, _, rows = name.partition(":")
    if features is None or base != "clicks" or "x" in rows:
        return name
    return f"clicks:{rows}x{features}"


def data_fault(name: str) -> str | None:
    """Why this name cannot be a data set: `mnist`, or `synthetic:5000x20:3` with its arguments."""
    base, _, arguments = name.partition(":")
    if base not in BUILT_IN:
        return unknown("data set", base, BUILT_IN)
    if base in ("synthetic", "clicks"):
        from paceline.data.shape import parse_clicks, parse_shape

        try:
            (parse_shape if base == "synthetic" else parse_clicks)(arguments)
        except DataError as wrong:
            return str(wrong)
    elif arguments:
        return f"data set '{base}' takes no arguments; '{name}' has ':{arguments}'."
    return None
