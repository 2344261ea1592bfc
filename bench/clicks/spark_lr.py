"""Spark MLlib's logistic regression, `local[2]`: both cores, rows in memory.

What was chosen to suit it:
- Rows are cached as vectors before `fit`, which alone is timed; no standardization, no penalty.
- As many iterations of L-BFGS as passes are asked for: each is at least one pass over the rows.
- Memory as it needs: its vectors are as long as there are features, in double precision.

It takes the first 200,000 rows only: more of them as vectors do not fit beside its model here. What
it does once an iteration for all features is so spread over fewer rows than elsewhere.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import psutil
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.linalg import SparseVector, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

from bench.clicks.rows import features, flags, log_loss, pieces, read, tell
from bench.processes import end_with_starter

MEMORY = "14g"
ROWS = 200_000  # of the training rows


def main() -> None:
    asked = flags()
    end_with_starter()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    width = features(asked.shards)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", MEMORY)
        .config("spark.driver.maxResultSize", "4g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    train, test = read(asked.shards, "train"), read(asked.shards, "test")
    train = train._replace(labels=train.labels[:ROWS], ids=train.ids[:ROWS])
    shape = StructType([StructField("label", DoubleType()), StructField("features", VectorUDT())])
    ones = [1.0] * train.ids.shape[1]

    def vectors() -> list[tuple[float, SparseVector]]:
        return [
            (float(label), SparseVector(width, sorted(ids), ones))
            for piece in pieces(train)
            for label, ids in zip(piece.labels.tolist(), piece.ids.tolist(), strict=True)
        ]

    rows = spark.createDataFrame(vectors(), shape).repartition(2).cache()
    count = rows.count()
    model = LogisticRegression(maxIter=asked.passes, regParam=0.0, standardization=False)
    began = time.perf_counter()
    fitted = model.fit(rows)
    seconds = time.perf_counter() - began
    memory = sum(p.memory_info().rss for p in psutil.Process().children(recursive=True)) / 1e6
    weights = fitted.coefficients.toArray()
    scores = weights[test.ids].sum(1) + fitted.intercept
    loss = log_loss(np.asarray(scores), test.labels)
    spark.stop()
    tell(asked.passes * count, seconds, loss, memory)


if __name__ == "__main__":
    main()
