"""TensorFlow's ParameterServerStrategy, asynchronous: one server, a coordinator, some workers.

Runs in an environment of its own (bench/environments/tensorflow.txt). Prints the times at which
steps ended, as JSON: one series, as TensorFlow does not tell which worker took a step.

What was chosen to suit it:
- The step is a compiled `tf.function` in plain operations; parameters are read once a step, and
  the learning rate is part of the loss, so that an update is a single operation of the server.
- A scheduled function may take several steps, each with a pull and a push of its own ("multi-step
  packing", unrolled): the coordinator then has next to nothing to do. `--packed 1` is without it,
  as in TensorFlow's guide; the bench shows both.
- Data is in the workers' memory as batches, shuffled, and prefetched while a step runs.
- One thread computes in each worker, as everywhere else. Threads that only pass on operations
  are workers + 1, as TensorFlow's guide asks: with fewer, workers may stall.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

from bench.processes import end_with_starter, free_ports, pin
from paceline.data.idx_folder import read_part
from paceline.data.mnist import SHIPPED

# Shapes of the parameters: weights and biases in turn.
SHAPES = {
    "softmax": [(784, 10), (10,)],
    "lenet": [
        *[(5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,)],
        *[(400, 120), (120,), (120, 84), (84,), (84, 10), (10,)],
    ],
    "mlp": [(784, 4096), (4096,), (4096, 4096), (4096,), (4096, 10), (10,)],
}
# Steps in a scheduled function.
PACKED = {"softmax": 64, "lenet": 16, "mlp": 4}


def scores(task: str, parameters: list[Any], images: Any) -> Any:
    """The model's output for images of (batch, 28, 28), the same as that of Paceline's task."""
    pairs = list(zip(parameters[::2], parameters[1::2], strict=True))
    if task == "lenet":
        x = images[..., None]
        for (weight, bias), padding in zip(pairs[:2], ("SAME", "VALID"), strict=True):
            x = tf.nn.bias_add(tf.nn.conv2d(x, weight, 1, padding), bias)
            x = tf.nn.relu(tf.nn.max_pool2d(x, 2, 2, "VALID"))
        pairs = pairs[2:]
    else:
        x = images
    x = tf.reshape(x, (x.shape[0], -1))
    for weight, bias in pairs[:-1]:
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weight), bias))
    weight, bias = pairs[-1]
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def initial(shape: tuple[int, ...]) -> Any:
    """As torch's layers begin: uniform, by the number of inputs."""
    if len(shape) == 1:
        return tf.zeros(shape)
    bound = 1 / np.prod(shape[:-1]) ** 0.5
    return tf.random.uniform(shape, -bound, bound)


def batches(batch: int) -> Callable[[], Any]:
    """A function that makes the data set, on whichever worker runs it."""
    images, labels = read_part(SHIPPED, "train")
    order = np.random.default_rng(0).permutation(len(labels))
    order = order[: len(order) // batch * batch].reshape(-1, batch)

    def to_floats(x: Any, y: Any) -> Any:
        return tf.cast(x, tf.float32) * (1 / 255), tf.cast(y, tf.int32)

    def make() -> Any:
        data = tf.data.Dataset.from_tensor_slices((images[order], labels[order]))
        # Whole batches change places: shuffling single samples would cost more than a step.
        data = data.shuffle(len(order)).repeat().map(to_floats)
        return data.prefetch(2)

    return make


def training(task: str, variables: list[Any], lr: float, packed: int) -> Any:
    """The function a worker runs: `packed` steps, and the times at which they ended."""

    def step(iterator: Any) -> Any:
        images, labels = next(iterator)
        parameters = [variable.read_value() for variable in variables]
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            found = scores(task, parameters, images)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, found)
            scaled = tf.reduce_mean(losses) * lr
        gradients = tape.gradient(scaled, parameters)
        pairs = zip(variables, gradients, strict=True)
        updates = [variable.assign_sub(gradient) for variable, gradient in pairs]
        with tf.control_dependencies(updates):
            return tf.timestamp(), scaled / lr

    @tf.function  # type: ignore[untyped-decorator]
    def steps(iterator: Any) -> Any:
        return [step(iterator) for _ in range(packed)]

    return steps


def coordinate(args: argparse.Namespace, cluster: dict[str, list[str]]) -> list[float]:
    """Train; the times at which steps ended while no worker was idle."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variables = [tf.Variable(initial(shape)) for shape in SHAPES[args.task]]
    iterator = iter(coordinator.create_per_worker_dataset(batches(args.batch)))
    steps = training(args.task, variables, args.lr, args.packed)
    # Enough that each worker has built the function before the clock matters.
    for _ in range(2 * args.workers):
        coordinator.schedule(steps, args=(iterator,))
    coordinator.join()
    count = -(-args.steps * args.workers // args.packed)
    waiting = [coordinator.schedule(steps, args=(iterator,)) for _ in range(count)]
    coordinator.join()
    done = [[(float(time), float(loss)) for time, loss in w.fetch()] for w in waiting]
    if not done[-1][-1][1] < done[0][0][1] + 1:
        raise SystemExit("TensorFlow's loss went up, or is no number.")
    # Functions end in turn; when the last but (workers - 1) ends, nothing is left for its worker.
    idle = sorted(taken[-1][0] for taken in done)[-args.workers]
    return sorted(time for taken in done for time, _ in taken if time <= idle)


def serve(args: argparse.Namespace, cluster: dict[str, list[str]]) -> None:
    """Be a worker or the server until ended."""
    if args.role == "worker":
        pin(args.index, args.workers)
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=args.workers + 1
    )
    tf.distribute.Server(
        tf.train.ClusterSpec(cluster),
        job_name=args.role,
        task_index=args.index,
        protocol="grpc",
        config=config,
    ).join()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", choices=SHAPES, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--packed", type=int, help="steps in a scheduled function")
    parser.add_argument("--role", choices=("coordinator", "worker", "ps"), default="coordinator")
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--cluster", type=json.loads, help="given to roles by the coordinator")
    args = parser.parse_args()
    args.packed = args.packed or PACKED[args.task]
    end_with_starter()
    if args.role != "coordinator":
        serve(args, args.cluster)
        return
    hosts = [f"127.0.0.1:{port}" for port in free_ports(args.workers + 1)]
    cluster = {"worker": hosts[1:], "ps": hosts[:1]}
    command = [sys.executable, "-m", "bench.tensorflow_ps", *sys.argv[1:]]
    command += ["--cluster", json.dumps(cluster)]
    roles = [(role, index) for role, all_of in cluster.items() for index in range(len(all_of))]
    # Should this process be killed, they end with the standard input that all inherit.
    started = [
        subprocess.Popen([*command, "--role", role, "--index", str(index)], stdout=sys.stderr)
        for role, index in roles
    ]
    try:
        print(json.dumps([coordinate(args, cluster)]), flush=True)
    finally:
        for process in started:
            process.kill()
    # TensorFlow would look for its roles once more, and complain that they are gone.
    os._exit(0)


if __name__ == "__main__":
    main()
