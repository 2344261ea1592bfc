"""The codecs by name. No torch here: specs are checked against this."""

from __future__ import annotations

from paceline.errors import unknown

CODECS: dict[str, str] = {
    "none": "float32 as it is",
    "bf16": "bfloat16, in float32's range: half the bytes",
    "fp16": "float16, finer up to 65504: half the bytes",
    "int8": "a byte a number, scaled by row: a quarter",
    "topk:RATIO": "the largest numbers only, with their places: 2 x RATIO",
    "onebit": "signs, and two means a row: a thirtieth",
}


def codec_fault(text: str) -> str | None:
    """What is wrong with a codec as a spec gives it, in a sentence."""
    name, colon, ratio = text.partition(":")
    if name == "topk":
        try:
            sound = bool(colon) and 0 < float(ratio) <= 1
        except ValueError:
            sound = False
        return None if sound else f"--codec {text}: say topk:RATIO, as topk:0.01 for a hundredth."
    if colon or name not in CODECS:
        return unknown("codec", text, CODECS)
    return None
