"""Reading numbers out of bytes, as a part of compiled loops."""

from __future__ import annotations

import numpy as np

from paceline.data.sparse.text import Fault
from paceline.kernels.jit import inlined

NEWLINE, RETURN, QUOTE, SPACE = ord("\n"), ord("\r"), ord('"'), ord(" ")
MINUS, PLUS, POINT, ZERO, NINE = ord("-"), ord("+"), ord("."), ord("0"), ord("9")
EXPONENT = (ord("e"), ord("E"))
DIGITS = 18  # that surely fit 64 bits
LARGEST = 300  # exponent; beyond, a number is no number
NO_LABEL, ODD_LABEL = Fault.NO_LABEL.value, Fault.ODD_LABEL.value


@inlined
def integer(text, begin, end):  # type: ignore[no-untyped-def]
    """Whether these bytes are a whole number, and which."""
    negative = begin < end and text[begin] == MINUS
    if begin < end and (negative or text[begin] == PLUS):
        begin += 1
    if begin == end or end - begin > DIGITS:
        return False, np.int64(0)
    value = np.int64(0)
    for at in range(begin, end):
        digit = text[at] - ZERO
        if text[at] < ZERO or digit > 9:
            return False, np.int64(0)
        value = value * 10 + np.int64(digit)
    return True, -value if negative else value


@inlined
def decimal(text, begin, end):  # type: ignore[no-untyped-def]
    """Whether these bytes are a finite number, and which, to the last bit or two of a double."""
    negative = begin < end and text[begin] == MINUS
    if begin < end and (negative or text[begin] == PLUS):
        begin += 1
    value, digits, places, after = 0.0, 0, 0, False
    at = begin
    while at < end:
        byte = text[at]
        if ZERO <= byte <= NINE:
            value = value * 10.0 + (byte - ZERO)
            digits += 1
            places += after
        elif byte == POINT and not after:
            after = True
        else:
            break
        at += 1
    if not digits:
        return False, 0.0
    power = -places
    if at < end:
        if text[at] != EXPONENT[0] and text[at] != EXPONENT[1]:
            return False, 0.0
        good, more = integer(text, at + 1, end)
        if not good or more > LARGEST or more < -LARGEST:
            return False, 0.0
        power += more
    value = value * 10.0**power if power > 0 else value / 10.0 ** (-power)
    if not np.isfinite(np.float32(value)):
        return False, 0.0
    return True, -value if negative else value


@inlined
def label(text, begin, end, above):  # type: ignore[no-untyped-def]
    """What is wrong with a label, or 0, and whether it is 1: above that number, or of no number
    (NaN) just 1, beside -1 and 0."""
    good, value = decimal(text, begin, end)
    if not good:
        return NO_LABEL, False
    if np.isnan(above):
        return (0 if value in (-1.0, 0.0, 1.0) else ODD_LABEL), value > 0
    return 0, value > above
