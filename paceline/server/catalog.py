"""The update rules by name. No torch here: specs are checked against this."""

# 128 Ki floats, half a megabyte: the mean of a chunk is still in the cache when it is applied, and
# the calls that go over it cost little beside it.
CHUNK = 1 << 17

# How many numbers a rule keeps for every parameter.
STATES = {
    **{"sgd": 0, "momentum": 1, "nesterov": 1, "adagrad": 1, "adam": 2, "adamw": 2},
    **{"lars": 1, "lamb": 2, "ftrl": 2},
}

# Those that need the norms of whole layers, wherever shards cut them.
LAYERWISE = frozenset({"lars", "lamb"})

# Those whose rate must not change: it falls for each parameter by itself, and parameters follow it.
STEADY = frozenset({"ftrl"})

# Those that have a form for the rows of sparse tables.
ROWWISE = frozenset({"sgd", "adagrad", "adam", "ftrl"})

RULES: dict[str, str] = {
    "sgd": "plain gradient descent",
    "momentum": "gradient descent with heavy-ball momentum",
    "nesterov": "gradient descent with Nesterov's momentum",
    "adagrad": "rates per parameter from summed squared gradients",
    "adam": "Adam",
    "adamw": "Adam with decoupled weight decay",
    "ftrl": "follow the regularized leader, per parameter; with --l1 most of them stay zero",
    "lars": "momentum with a rate per layer, for large batches",
    "lamb": "Adam with a rate per layer, for large batches",
}
