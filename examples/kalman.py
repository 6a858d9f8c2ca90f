"""A Kalman filter over the Nile's yearly flow, with small matrices and one step per year.

The model is a local linear trend: the level changes by a slope, and both change randomly. The step
is written once, with operators that arrays and tensors share. It runs in NumPy, in TensorFlow, in
TensorFlow with `fastops.install`, and as a step that `fastops.backend.replayable` has recorded. The
results differ at most by rounding, so the comparison is about the time of small ops.
"""

import argparse
import math
import statistics
import time
from typing import Any, NamedTuple

import numpy as np

OPS = 20
"""The number of small ops in a step."""


class Model(NamedTuple):
    """A linear model with Gaussian noise, as arrays or tensors of float64.

    The state ``a`` is observed as ``design @ a`` plus noise, and becomes ``transition @ a`` plus
    noise.
    """

    design: Any
    seen: Any
    transition: Any
    moved: Any
    noise: Any
    wandering: Any
    half: Any


def trend(as_tensor, noise=15099.0, level=1469.1, slope=4.0):
    """Return a local linear trend with these variances, and its initial state and covariance."""
    design, transition = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    wandering = np.diag([level, slope])
    matrices = [design, design.T, transition, transition.T, [[noise]], wandering, [[0.5]]]
    model = Model(*(as_tensor(np.ascontiguousarray(matrix, float)) for matrix in matrices))
    return model, as_tensor(np.array([[1000.0], [0.0]])), as_tensor(np.diag([1e6, 1e4]))


def step_of(model, log):
    """Return the step function, which takes the prediction for a year and its observation."""

    def step(state, covariance, observed):
        """Return the prediction for the next year, and the log-likelihood of the observation."""
        across = model.design @ covariance
        error = observed - model.design @ state
        variance = across @ model.seen + model.noise
        weighted = error / variance
        column = covariance @ model.seen
        state = model.transition @ (state + column @ weighted)
        covariance = covariance - column @ (across / variance)
        covariance = model.transition @ covariance @ model.moved + model.wandering
        return state, covariance, model.half * (log(variance) + error * weighted)

    return step


def run(step, state, covariance, series):
    """Filter a series; return the last state, its covariance, and the parts of the likelihood."""
    parts = []
    for observed in series:
        state, covariance, part = step(state, covariance, observed)
        parts.append(part)
    return state, covariance, parts


def by_numpy():
    return np.asarray, lambda model: step_of(model, np.log)


def by_tensorflow():
    import tensorflow as tf

    return tf.constant, lambda model: step_of(model, tf.math.log)


def by_fastops():
    import fastops
    import fastops.backend as K  # noqa: N812

    fastops.install()
    return (lambda value: K.constant(value, "float64")), lambda model: step_of(model, K.log)


def by_replays():
    import fastops.backend as K  # noqa: N812

    return (
        lambda value: K.constant(value, "float64"),
        lambda model: K.replayable(step_of(model, K.log)),
    )


KINDS = {
    "numpy": by_numpy,
    "tensorflow": by_tensorflow,
    "replayed": by_replays,  # this arm needs no `install`
    "fastops": by_fastops,  # this arm is last, since `install` stays active
}


def estimate(kind, flows, repeat):
    """Return log-likelihood, last level, slope and covariance, and a step's microseconds."""
    as_tensor, make = KINDS[kind]()
    model, state, covariance = trend(as_tensor)
    step = make(model)
    series = [as_tensor(np.array([[flow]])) for flow in flows]
    times = []
    for _ in range(repeat + 1):  # the first run prepares kernels
        begin = time.perf_counter()
        last, spread, parts = run(step, state, covariance, series)
        times.append((time.perf_counter() - begin) / len(series) * 1e6)
    constant = 0.5 * math.log(2 * math.pi) * len(series)
    likelihood = -constant - sum(float(np.asarray(part)[0, 0]) for part in parts)
    return likelihood, np.asarray(last), np.asarray(spread), statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=20, help="runs over the series (20)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    args = parser.parse_args()
    from statsmodels.datasets import nile

    flows = nile.load_pandas().data["volume"].to_numpy(float)
    print(f"{len(flows)} years, {OPS} small ops in each step")
    for kind in (kind for kind in KINDS if kind in args.kinds):
        likelihood, state, covariance, micro = estimate(kind, flows, args.repeat)
        print(
            f"{kind}: log-likelihood {likelihood:.6f}, level {state[0, 0]:.4f} with deviation "
            f"{covariance[0, 0] ** 0.5:.4f}, slope {state[1, 0]:.4f}"
        )
        print(f"seconds: {micro * 1e-6 * len(flows):.6f} a run, {micro:.1f} us a step")


if __name__ == "__main__":
    main()
