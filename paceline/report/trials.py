"""What a sweep keeps of each of its runs."""

from __future__ import annotations

from typing import Any

from paceline.report.words import Summary
from paceline.store.folder import RunFolder


def figures(folder: RunFolder, summary: Summary) -> dict[str, float | None]:
    """The run in a few numbers. An epoch's seconds are those of training, scoring included."""
    seconds, quality = summary["seconds"], summary["quality"]
    epochs = _epochs(folder, summary)
    train = seconds.get("train")
    return {
        "samples_per_second": summary["throughput"]["samples_per_second"],
        "low": summary["throughput"]["low"],
        "high": summary["throughput"]["high"],
        "accuracy": quality.get("accuracy"),
        "loss": quality.get("loss"),
        "epochs": epochs,
        "epoch_seconds": train / epochs if train and epochs else None,
        "train_seconds": train,
        "startup_seconds": seconds.get("startup"),
        "total_seconds": seconds.get("total"),
        "hosts": float(len({role["host"] for role in summary["roles"] if role["host"]}) or 1),
        # Roles that died unasked: the run's time has their coming back in it.
        "deaths": float(sum(not fault["injected"] for fault in summary["faults"])),
    }


def curve(folder: RunFolder, summary: Summary) -> list[dict[str, float | None]]:
    """Scores over the seconds and epochs of training; of workers with models of their own, the
    first's."""
    begin = summary["seconds"].get("startup") or 0.0
    shared = folder.spec.kind.shared
    own = [score for score in folder.scores() if shared or score.role == "worker-0"]
    return [
        {
            "seconds": max(0.0, score.time - begin),
            "epochs": score.epoch,
            "accuracy": score.values.get("accuracy"),
            "loss": score.values.get("loss"),
        }
        for score in sorted(own, key=lambda score: score.time)
    ]


def _epochs(folder: RunFolder, summary: Summary) -> float | None:
    """Passes over the data, by the samples that all workers took."""
    facts: dict[str, Any] = folder.read_spec().get("facts") or {}
    taken = sum(r["samples"] or 0 for r in summary["roles"] if r["role"].startswith("worker-"))
    return taken / facts["samples"] if taken and facts.get("samples") else None
