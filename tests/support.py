"""Functions for all tests: find the path of a call, compare results, and run programs."""

import ctypes
import itertools
import math
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import zygote
from tensorflow.python.eager import context
from tensorflow.python.util._pywrap_util_port import IsMklEnabled

import fastops
from fastops._autodiff import cases
from fastops._core.tables import facts

ROOT = Path(fastops.__file__).parents[1]

TENSORFLOW = tuple(map(int, tf.version.VERSION.split(".")[:2]))
"""The minor version of TensorFlow."""

SNAPSHOT = tuple(map(int, facts.VERSION.split(".")[:2]))
"""The minor version of which the generated files are."""

DIRECT = "direct"
FIRST = "tensorflow:first_call"


# What looks up one of oneDNN's primitives: a function; or, in newer versions of TensorFlow, a
# function that takes the cache, and the cache.
KEYED = "E5GetOpERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
LOOKUPS = (
    (f"_ZN10tensorflow19MklPrimitiveFactoryIf{KEYED}",),
    (
        f"_ZN10tensorflow8LRUCacheINS_12MklPrimitiveE{KEYED}",
        "_ZZN10tensorflow19MklPrimitiveFactoryIfE11GetLRUCacheEvE10lru_cache_",
        "_ZGVZN10tensorflow19MklPrimitiveFactoryIfE11GetLRUCacheEvE10lru_cache_",
    ),
)


def has_primitives():
    """Tell whether this TensorFlow exports its cache of oneDNN's primitives."""
    library = ctypes.CDLL(str(Path(tf.__file__).parent / "libtensorflow_cc.so.2"))
    return IsMklEnabled() and any(all(hasattr(library, name) for name in way) for way in LOOKUPS)


def took(op, **arguments):
    """Call an op; return its result, and its path: "direct", or path and reason as in "capi:op".

    Calls of other ops that the call makes, to read a variable, do not count.
    """
    before = fastops.stats().ops.get(op.op_name)
    result = op(**arguments)
    return result, path_since(before, op.op_name)


def path_since(before, op_name):
    """Return the path of the only call of an op since a snapshot of its counters."""
    after = fastops.stats().ops[op_name]
    paths = [
        path
        for path in ("direct", "capi", "tensorflow")
        for _ in range(getattr(after, path) - (getattr(before, path) if before else 0))
    ]
    assert len(paths) == 1, f"{op_name} was called {len(paths)} times: {paths}"
    reasons = [
        reason
        for reason, count in after.reasons.items()
        if count != (before.reasons.get(reason, 0) if before else 0)
    ]
    if paths == ["direct"]:
        assert not reasons
        return "direct"
    (reason,) = reasons
    return f"{paths[0]}:{reason}"


def check(op_name, path=DIRECT, first=FIRST, **arguments):
    """Compare two calls of an op with `tf.raw_ops`, bit for bit, and check their paths.

    Returns TensorFlow's result.
    """
    op = getattr(fastops.raw_ops, op_name)
    want = getattr(tf.raw_ops, op_name)(**arguments)
    for expected in (first, path):
        got, seen = took(op, **arguments)
        assert seen == expected, f"{op_name} took {seen}, not {expected}"
        assert_same(got, want)
    return want


def difference(got, want):
    """Describe how two results differ (structure, dtype, shape, device, bits); `None` if not."""
    if type(got) is not type(want):
        return f"{type(got).__name__}, not {type(want).__name__}: {got!r}, not {want!r}"[:1000]
    if isinstance(want, (list, tuple)):
        if len(got) != len(want):
            return f"{len(got)} items, not {len(want)}"
        for place, (one, other) in enumerate(zip(got, want, strict=True)):
            if differing := difference(one, other):
                return f"[{place}]: {differing}"
        return None
    if isinstance(want, dict):
        return difference(list(got.items()), list(want.items()))
    if isinstance(want, tf.Tensor):
        for attribute in ("dtype", "shape", "device", "backing_device"):
            if getattr(got, attribute) != getattr(want, attribute):
                return f"{attribute} {getattr(got, attribute)}, not {getattr(want, attribute)}"
        if want.dtype in (tf.resource, tf.variant):
            return None
        return difference(np.asarray(got.numpy()), np.asarray(want.numpy()))
    if isinstance(want, np.ndarray):
        return difference_of_arrays(got, want)
    if isinstance(want, tf.__internal__.CompositeTensor):
        one, other = (tf.nest.flatten(result, expand_composites=True) for result in (got, want))
        return difference(one, other)
    return None if got == want else f"{got!r}, not {want!r}"


def difference_of_arrays(got, want):
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    if want.dtype == object:
        differ = np.array([one != other for one, other in zip(got.flat, want.flat, strict=True)])
    elif got.tobytes() == want.tobytes():
        return None
    else:
        one, other = (
            np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, -1)
            for array in (got, want)
        )
        differ = (one != other).any(axis=1)
    if not differ.any():
        return None
    first = int(np.argmax(differ))
    return (
        f"{differ.sum()} of {want.size} elements differ, the first at {first}: "
        f"{got.flat[first]!r}, not {want.flat[first]!r}"
    )


def assert_same(got, want):
    """Assert that two results are the same: structure, dtype, shape, device and every bit."""
    differing = difference(got, want)
    assert differing is None, differing


def assert_same_bits(got, want):
    assert_same(np.asarray(got), np.asarray(want))


class Failure(NamedTuple):
    kind: type
    message: str


def failure(function, **arguments):
    """Return the class and message of the exception that a call raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any exception
        function(**arguments)
    return Failure(caught.type, str(caught.value))


PRELUDE = """\
import faulthandler
import numpy as np, tensorflow as tf
faulthandler.enable()
import fastops
from fastops import ops, raw_ops
from fastops._specialize import policy
from fastops._plans import planned
planned.TIMED_PLAN_NS = float("inf")  # timings on a busy machine are not reliable
policy.set_share(0)  # make recordings after one call
"""


def python(code, *, timeout=120, status=0, forked=True, **environment):
    """Run code in a new process, and return its output.

    In the code, `tf`, `np`, `fastops` and its modules of ops are imported, and there is no context.
    If the process has another exit status or does not end, the failure shows its whole output. The
    process is a fork of one that has imported all this (see `zygote`). Use `interpreter` if a test
    is about the start or end of an interpreter, or about environment variables that are read at the
    start.
    """
    code = PRELUDE + textwrap.dedent(code)
    if not forked:
        return interpreter(code, timeout=timeout, status=status, **environment)
    early = environment.keys() - zygote.READ_LATE
    source = zygote.of(**{name: environment[name] for name in early})
    variables = zygote.environment_of(**environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with open(os.devnull) as nothing:
            streams = [file.fileno() for file in (nothing, out, err)]
            process = source.start(code, variables, *streams)
        try:
            ended = process.wait(timeout)
        except TimeoutError:
            ended = None
        finally:
            process.kill()
            process.wait()
        for file in (out, err):
            file.seek(0)
        return _printed(ended, status, timeout, *(file.read().decode() for file in (out, err)))


def interpreter(code, *, timeout=120, status=0, **environment):
    """Run code in a new interpreter, without any imports; return its output."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=zygote.environment_of(**environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
        ended = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        ended = None
    return _printed(ended, status, timeout, out, err)


def _printed(ended, status, timeout, out, err):
    """Return the output of a process; fail with its output if it has another exit status."""
    if ended is None:
        pytest.fail(f"still running after {timeout} s\n{out}\n{err}")
    if ended != status:
        pytest.fail(f"exit status {ended}, not {status}\n{out}\n{err}")
    return out


def free_ports(count):
    """Return unused ports.

    They are outside of the range from which the kernel assigns ports, so no other process gets them
    before they are used. Processes search in different ranges.
    """
    with ExitStack() as stack:
        ports = []
        begin = 20_000 + 10 * os.getpid() % 10_000
        for port in itertools.chain(range(begin, 30_000), range(20_000, begin)):
            probe = stack.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("localhost", port))
                ports.append(port)
            if len(ports) == count:
                return ports


@contextmanager
def walks_in_full():
    """Walk over each tape: replay no gradient functions."""
    configure = cases.configure
    configure(None, None)
    cases.configure = lambda generated, guard: None
    try:
        yield
    finally:
        cases.configure = configure


@contextmanager
def optimizer_options(**options):
    """Set options of TensorFlow's graph optimizer for a block.

    `tf.config.optimizer.set_experimental_options` cannot take an option back: one that is set to
    its default is still a part of the configuration.
    """
    ours = context.context()
    before = dict(ours._optimizer_experimental_options)
    tf.config.optimizer.set_experimental_options(options)
    try:
        yield
    finally:
        ours._optimizer_experimental_options = before
        tf.config.optimizer.set_experimental_options({})  # forgets what is made of the options


def one_in(count, values):
    """Return the parameters of a test; all but one in `count` are marked as slow."""
    return [
        pytest.param(value, marks=pytest.mark.slow) if number % count else value
        for number, value in enumerate(values)
    ]


def floats(*shape, dtype=np.float32, seed=0):
    """Return reproducible values of any dtype, the same ones for the same shape and seed."""
    generator = np.random.default_rng([seed, math.prod(shape), len(shape)])
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "ui":
        return generator.integers(0 if dtype.kind == "u" else -9, 9, shape).astype(dtype)
    if dtype.kind == "c":
        return (generator.normal(size=shape) + 1j * generator.normal(size=shape)).astype(dtype)
    if dtype.kind == "O":
        words = [b"s%d" % i for i in generator.integers(0, 99, shape).flat]
        return np.array(words, object).reshape(shape)
    return np.asarray(generator.normal(size=shape)).astype(dtype)


SPECIAL = [0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000, 0, 1, 0x007FFFFF, 0x7F7FFFFF, 0xFF800000]


def special(*shape, seed=0):
    """Return `floats` in which one value in five is a NaN, infinity, zero or denormal."""
    generator = np.random.default_rng(seed)
    bits = generator.choice(np.array(SPECIAL, np.uint32), size=shape).view(np.float32)
    return np.where(generator.random(shape) < 0.2, bits, floats(*shape, seed=seed))


def outcome(function, **arguments):
    """Return the result of a call, or the `Failure` if it raises."""
    try:
        return function(**arguments)
    except Exception as error:
        return Failure(type(error), str(error))


def assert_same_outcome(op_name, **arguments):
    """Compare two calls of an op with `tf.raw_ops`, result or exception; return the outcome."""
    want = outcome(getattr(tf.raw_ops, op_name), **arguments)
    for _ in range(2):
        assert_same(outcome(getattr(fastops.raw_ops, op_name), **arguments), want)
    return want


def both(program, path=DIRECT):
    """Run a program of raw ops on TensorFlow's and on fastops' ops, and compare the results.

    In the second run with fastops, all calls must take that path. Returns TensorFlow's result.
    """
    want = program(tf.raw_ops)
    assert_same(program(fastops.raw_ops), want)
    fastops.reset_stats()
    assert_same(program(fastops.raw_ops), want)
    seen = fastops.stats()
    calls = {"direct": seen.direct, "capi": seen.capi, "tensorflow": seen.tensorflow}
    assert [name for name, count in calls.items() if count] == [path], seen
    return want
