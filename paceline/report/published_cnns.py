"""Image classifiers on several GPUs of one machine, 2017."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.report.printed import Printed
from paceline.report.published import records_of, rows_of

BATCHES = "cnn_batch_speedup_2017.csv"
CIFAR = "cnn_cifar10_2017.csv"
IMAGENET = "cnn_imagenet_2017.csv"
CLOCKS = "alexnet_clock_2017.csv"
TOPOLOGY = "alexnet_topology_2017.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpeedup:
    """The speedup of some GPUs over one, at a batch size."""

    gpus: int
    batch: int
    speedup: Printed


@dataclass(frozen=True, slots=True, kw_only=True)
class CifarModel:
    """A model on two GPUs, against one."""

    model: str
    parameters: int
    speedup_2_gpus: Printed
    efficiency_pct: Printed


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagenetRate:
    """The rate of a program on some GPUs; `parameters_on` is where its parameter server lives."""

    model: str
    implementation: str
    machine: str
    gpus: int
    parameters_on: str
    images_per_second: Printed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockedGpu:
    """One of six GPUs of a kind in one machine."""

    gpu: int
    images_per_second: float
    memory_clock_ghz: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPair:
    """Images a second of two GPUs: in one PCIe switch group (pix), or across the bridge (phb)."""

    parameters_on: str
    variable_update: str
    nccl: str
    pix_0_1: float
    pix_4_5: float | None
    phb_0_5: float


def batch_speedups() -> list[BatchSpeedup]:
    """A small CNN on one to six GPUs; batch by batch, as the columns are."""
    rows = rows_of(BATCHES)
    columns = [column for column in rows[0] if column.startswith("batch_")]
    return [
        BatchSpeedup(
            gpus=int(row["gpus"]),
            batch=int(column.removeprefix("batch_")),
            speedup=Printed(row[column]),
        )
        for column in columns
        for row in rows
    ]


def cifar_models() -> list[CifarModel]:
    return records_of(CIFAR, CifarModel)


def imagenet_rates() -> list[ImagenetRate]:
    return records_of(IMAGENET, ImagenetRate)


def clocked_gpus() -> list[ClockedGpu]:
    return records_of(CLOCKS, ClockedGpu)


def linked_pairs() -> list[LinkedPair]:
    return records_of(TOPOLOGY, LinkedPair)
