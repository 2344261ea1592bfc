"""Student's t, as far as 95 % intervals need it."""

from __future__ import annotations

# 97.5 % quantiles for 1, 2, 3, … degrees of freedom.
TABLE = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
)
NORMAL = 1.959964


def t95(freedom: int) -> float:
    """Half the width of a 95 % interval, in standard errors."""
    if freedom < 1:
        raise ValueError("an interval needs at least two values")
    if freedom <= len(TABLE):
        return TABLE[freedom - 1]
    # Cornish-Fisher's first two terms: right to four digits from here on.
    z, v = NORMAL, freedom
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
