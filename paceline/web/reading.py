"""Folders are written by others: whatever is wrong with one is told in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from paceline.errors import PacelineError, StoreError

Read = TypeVar("Read")


def legible(read: Callable[[], Read]) -> Read:
    """What `read` gives. PacelineError if it cannot, also of files that are not as ours are."""
    try:
        return read()
    except PacelineError:
        raise
    except OSError as wrong:
        why = (wrong.strerror or str(wrong)).lower()
        raise StoreError(f"'{wrong.filename}' cannot be read: {why}.") from wrong
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:
        raise StoreError(
            "This cannot be read: it is damaged, or another version of Paceline wrote it "
            f"({type(wrong).__name__}: {wrong})."
        ) from wrong
