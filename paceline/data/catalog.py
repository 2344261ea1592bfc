"""The data sets by name. No torch here: specs are checked against this."""

from __future__ import annotations

from paceline.errors import DataError, unknown

BUILT_IN: dict[str, str] = {
    "mnist": "paceline.data.mnist",
    "fashion-mnist": "paceline.data.fashion_mnist",
    "synthetic": "paceline.data.synthetic",
}


def data_fault(name: str) -> str | None:
    """Why this name cannot be a data set: `mnist`, or `synthetic:5000x20:3` with its arguments."""
    base, _, arguments = name.partition(":")
    if base not in BUILT_IN:
        return unknown("data set", base, BUILT_IN)
    if base == "synthetic":
        from paceline.data.shape import parse_shape

        try:
            parse_shape(arguments)
        except DataError as wrong:
            return str(wrong)
    elif arguments:
        return f"data set '{base}' takes no arguments; '{name}' has ':{arguments}'."
    return None
