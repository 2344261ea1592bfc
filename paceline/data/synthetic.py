"""Synthetic data of any shape: seeded, learnable, and the same on every machine.

Each class has a prototype; a sample is its class's prototype p blended with noise e of its own,

    x = w p + (1 - w) e,        p, e uniform on [-1, 1)

so two classes lie sqrt(2 D) w / (1 - w) standard deviations of noise apart in D features. The
weight w is chosen to make that SEPARATION whatever D is: hard enough that training shows, easy
enough that it succeeds. All arithmetic is on whole numbers, since floats may differ in the last
bit between machines, and bits come raw from PCG64, whose stream numpy promises not to change.
"""

from __future__ import annotations

import math

import numpy as np

from paceline.data.base import Array, Data
from paceline.data.shape import parse_shape

SEPARATION = 5
WHOLE = 256  # weights are counted in 256ths
CHUNK = 1 << 18  # values blended at a time, to stay in the processor's cache


def load(arguments: str, data_dir: str | None, seed: int) -> Data:
    from paceline.data.arrays import Arrays  # brings torch, which check must not

    shape = parse_shape(arguments)
    bits = np.random.PCG64(np.random.SeedSequence([seed, *shape.dims, shape.classes]))
    prototypes = _random(bits, shape.classes, shape.features)
    train, test = (
        Arrays(*_part(bits, prototypes, samples), scale=1 / 128, shape=shape.dims)
        for samples in (shape.samples, max(1, shape.samples // 6))
    )
    return Data(train=train, test=test, shape=shape.dims, classes=shape.classes)


def check(arguments: str, data_dir: str | None, seed: int) -> int:
    return parse_shape(arguments).samples


def _part(bits: np.random.PCG64, prototypes: Array, samples: int) -> tuple[Array, Array]:
    """That many samples and their labels, the classes taking turns."""
    classes, features = prototypes.shape
    share = _weight(features)
    drawn = prototypes.astype(np.int16) * np.int16(share)
    labels = np.arange(samples, dtype=np.int64) % classes
    inputs = np.empty((samples, features), dtype=np.int8)
    step = max(1, CHUNK // features)
    for first in range(0, samples, step):
        chunk = slice(first, min(first + step, samples))
        blend = _random(bits, chunk.stop - first, features) * np.int16(WHOLE - share)
        blend += drawn[labels[chunk]]
        np.right_shift(blend, 8, out=inputs[chunk], casting="unsafe")
    return inputs, labels


def _weight(features: int) -> int:
    """The prototype's share of a sample, in 256ths."""
    ratio = SEPARATION / math.sqrt(2 * features)
    return max(1, round(WHOLE * ratio / (1 + ratio)))


def _random(bits: np.random.PCG64, rows: int, features: int) -> Array:
    """Whole numbers from -128 to 127."""
    count = rows * features
    raw = bits.random_raw(-(-count // 8)).astype("<u8", copy=False)
    return raw.view(np.int8)[:count].reshape(rows, features)
