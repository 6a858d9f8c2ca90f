"""The arms of the ladder: the calls of an op in each library."""

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from pytest_fastops.race import Arm

from fastops_bench.cases import Case, State

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


LIBRARIES = "FASTOPS_BENCH_LIBRARIES"
"""The environment variable with the libraries to measure; default: all that are installed."""


PEERS = "FASTOPS_BENCH_PEERS"
"""The environment variable with the folder of the peers' environments, if peers are measured."""


COMMANDS = {
    "stock": [sys.executable],
    "installed": [sys.executable, "-m", "fastops"],
}
"""The interpreters of programs that run in their own process, by arm."""


def interpreter(library):
    """Return the Python of an environment with a library, for programs; `None` if there is none."""
    own = Path(os.environ.get(PEERS, os.devnull), library, "bin", "python")
    if own.exists():
        return str(own)
    return sys.executable if installed(library) else None


def installed(module):
    """Tell whether to measure a library in this process."""
    asked = os.environ.get(LIBRARIES)
    if asked is not None and module not in asked.split(","):
        return False
    return importlib.util.find_spec(module) is not None


def long_but(names, short):
    """Return parameters of a test. All that are not in `short` are marked as long."""
    return [
        pytest.param(name, id=name, marks=() if name in short else pytest.mark.long)
        for name in names
    ]


def ladder(case: Case) -> list[Arm]:
    """Make the arms of an op, for the libraries that this environment has."""
    arms = [_numpy_arm(case)]
    if installed("tensorflow"):
        arms += _tensorflow_arms(case)
    if installed("torch"):
        arms.append(_torch_arm(case))
    if installed("jax"):
        arms += _jax_arms(case)
    arms = [arm for arm in arms if arm.statement]
    _agree(case, arms)
    return arms


def _arrays(case, convert):
    """Convert each array, or list of arrays, among the inputs of a case."""
    return {
        name: [convert(name, item) for item in value]
        if isinstance(value, list)
        else convert(name, value)
        for name, value in case.inputs.items()
    }


def _plain(name, value):
    return value.value.copy() if isinstance(value, State) else value


def _numpy_arm(case):
    return Arm("numpy", case.np, {**_arrays(case, _plain), "np": np})


def _tensorflow_arms(case):
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    variables = []

    def convert(name, value):
        if isinstance(value, State):
            variables.append(tf.Variable(value.value))
            return variables[-1].handle
        return tf.constant(value)

    inputs = _arrays(case, convert)
    attrs = {
        name: tf.as_dtype(value) if isinstance(value, type) else value
        for name, value in case.attrs.items()
    }
    arguments = inputs | attrs
    keywords = ", ".join(f"{name}={name}" for name in arguments)
    positions = ", ".join([*inputs, *(f'"{name}", {name}' for name in attrs)])
    names = {
        **arguments,
        "tf": tf,
        "raw_ops": tf.raw_ops,
        "fast_path": pywrap_tfe.TFE_Py_FastPathExecute,
        "context": context.context(),
        "variable": variables[0] if variables else None,
    }
    arms = [
        Arm("fast path", f'fast_path(context, "{case.op}", None, {positions})', names),
        Arm("raw_ops", f"raw_ops.{case.op}({keywords})", names),
        Arm("tf", case.tf, names),
    ]
    return _fastops_arms(case, names, arguments) + arms if installed("fastops") else arms


def _fastops_arms(case, names, arguments):
    import fastops
    from fastops._reports.floors import BareKernel, CallFloor

    op = getattr(fastops.raw_ops, case.op)
    keywords = ", ".join(f"{name}={name}" for name in arguments)
    names |= {
        "ops": fastops.raw_ops,
        "floor": CallFloor(),
        "kernel": BareKernel(op, **arguments),
    }
    arms = [
        Arm("floor", f"floor({keywords})", names),
        Arm("fastops", f"ops.{case.op}({keywords})", names),
        Arm("kernel", "kernel()", names),
    ]
    if case.onednn:
        arms.append(
            Arm(
                "fastops, plain kernel",
                f"ops.{case.op}({keywords})",
                names,
                lambda: fastops.options(onednn="off"),
            )
        )
    return arms


def _torch_arm(case):
    import torch

    torch.set_num_threads(1)

    def convert(name, value):
        array = np.asarray(_plain(name, value))
        if axes := case.channels_first.get(name):
            array = np.ascontiguousarray(array.transpose(axes))
        return None if array.dtype.kind == "S" else torch.tensor(array)

    names = {
        **_arrays(case, convert),
        "torch": torch,
        "functional": torch.nn.functional,
    }
    return Arm("torch", case.torch, names)


def _jax_arms(case):
    import jax

    # Make calls synchronous, as in other libraries: a call ends when its result is computed.
    jax.config.update("jax_cpu_enable_async_dispatch", False)

    def convert(name, value):
        array = np.asarray(_plain(name, value))
        return None if array.dtype.kind == "S" else jax.numpy.asarray(array)

    inputs = _arrays(case, convert)
    names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, **inputs}
    arms = [Arm("jax", case.jax, names)]
    if case.jax:
        function = eval(f"lambda {', '.join(inputs)}: {case.jax}", names)
        call = f"jitted({', '.join(inputs)})"
        arms.append(Arm("jax.jit", call, {**names, "jitted": jax.jit(function)}))
    return arms


def _agree(case, arms):
    """Raise an error if the arms do not compute the same."""
    expected = None
    for arm in arms:
        if arm.name == "floor" or any(isinstance(value, State) for value in case.inputs.values()):
            continue
        actual = _flat(arm.result())
        if arm.name == "torch" and case.channels_first and actual[0].ndim == 4:
            actual = [array.transpose(0, 2, 3, 1) for array in actual]
        expected = actual if expected is None else expected
        for want, got in zip(expected, actual, strict=False):
            if want.dtype.kind in "biuf":
                np.testing.assert_allclose(got, want, rtol=1e-3, err_msg=f"{case.op}: {arm.name}")


def _flat(result):
    """Return the arrays of a result; of a batch norm, only those that every library returns."""
    if isinstance(result, list | tuple) and not hasattr(result, "y"):
        return [np.asarray(item) for item in result]
    return [np.asarray(getattr(result, "y", result))]
