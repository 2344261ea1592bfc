"""The command's first lines: `paceline …`, also as `python -m paceline.cli …`.

Interrupts are noted before anything is imported that takes its time: libraries may drop one.
"""

from __future__ import annotations

import sys

from paceline.cli.codes import INTERRUPTED
from paceline.interrupts import note_interrupts


def main() -> int:
    """The exit code."""
    note_interrupts()
    try:
        from paceline.cli.main import main as whole
    except KeyboardInterrupt:
        return INTERRUPTED
    return whole()


if __name__ == "__main__":
    sys.exit(main())
