"""Install a wheel in an environment with TensorFlow and without a compiler, and use it."""

import sys
import time

from . import ROOT, WORK
from .environments import pip, run, without_compiler

SLOWEST = 15
"""The time limit of pip and the first call together, in seconds."""

FIRST_CALL = """
import shutil
assert not any(map(shutil.which, ("cc", "gcc", "g++", "c++", "clang"))), "there is a compiler"
import tensorflow as tf
import fastops
x = tf.constant([1.0, 2.0])
with fastops.accelerated():
    assert (x + 2.0 * x).numpy().tolist() == [3.0, 6.0]
    for _ in range(3):
        x * x
assert fastops.stats().direct >= 2, fastops.stats()
"""

SMOKE = """
import json, keras, numpy as np, tensorflow as tf
import fastops, fastops.backend
from fastops import _build_info, _dispatch, ops
from fastops._core import build
one = tf.constant([[1.0, 2.0], [3.0, 4.0]])
for _ in range(3):
    assert ops.mat_mul(a=one, b=one).numpy().tolist() == [[7.0, 10.0], [15.0, 22.0]]
model = keras.Sequential([keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
function = fastops.function(lambda a: tf.tanh(a) @ a)
with fastops.accelerated():
    model.fit(np.ones((8, 2), "float32"), np.ones((8, 1), "float32"), verbose=0)
    with tf.GradientTape() as tape:
        tape.watch(one)
        loss = tf.reduce_sum(function(one) * one)
    assert tape.gradient(loss, one).shape == (2, 2)
    function(one)
assert fastops.backend.sum(one).numpy() == 10.0
folder = build.choose(build.describe(tf), _build_info.BUILDS)
assert f"/{folder}/" in _dispatch.__file__, _dispatch.__file__
print(tf.version.VERSION, folder)
"""

DEMO = ("examples/digits_online.py", "--epochs", "1", "--images", "200")


def attempt(wheel, interpreter, say, limit=SLOWEST):
    """Install the wheel, call an op, inspect the package, run the demo, and uninstall the wheel.

    Parameters
    ----------
    wheel
        The path of the wheel.
    interpreter
        The interpreter of an environment with TensorFlow.
    say
        Called with a line of text for each step.
    limit
        The time limit of the installation and the first call, in seconds.
    """
    outside = WORK / "elsewhere"  # a folder from which no checkout is found
    outside.mkdir(exist_ok=True)
    alone = {"cwd": outside, "env": without_compiler()}
    pip(interpreter, "uninstall", "--yes", "fastops", "rich")
    begin = time.monotonic()
    pip(interpreter, "install", wheel, **alone)
    installed = time.monotonic()
    run([interpreter, "-c", FIRST_CALL], **alone)
    end = time.monotonic()
    say(f"pip {installed - begin:.1f} s, the first call {end - installed:.1f} s")
    if end - begin > limit:
        sys.exit(f"that is more than {limit} s")
    say("smoke test: " + run([interpreter, "-c", SMOKE], **alone).splitlines()[-1])
    run([interpreter, "-m", "fastops", "doctor"], **alone)
    pip(interpreter, "install", "scikit-learn>=1.5", **alone)
    run([interpreter, ROOT / DEMO[0], *DEMO[1:]], **alone)
    say("demo: the same weights as TensorFlow's")
    pip(interpreter, "uninstall", "--yes", "fastops")
