"""From a codec's text, as a spec gives it, to the codec."""

from __future__ import annotations

import torch

from paceline.errors import RequestError
from paceline.exchange.codecs.base import Codec
from paceline.exchange.codecs.casts import Cast
from paceline.exchange.codecs.catalog import codec_fault
from paceline.exchange.codecs.int8 import Int8
from paceline.exchange.codecs.onebit import OneBit
from paceline.exchange.codecs.plain import Plain
from paceline.exchange.codecs.topk import TopK


def make_codec(text: str) -> Codec:
    """`none`, `bf16`, `fp16`, `int8`, `topk:0.01` or `onebit`; a new one each time."""
    if fault := codec_fault(text):
        raise RequestError(fault)
    match text.partition(":"):
        case "bf16", _, _:
            return Cast("bf16", torch.bfloat16)
        case "fp16", _, _:
            return Cast("fp16", torch.float16)
        case "int8", _, _:
            return Int8()
        case "onebit", _, _:
            return OneBit()
        case "topk", _, ratio:
            return TopK(float(ratio))
        case _:
            return Plain()
