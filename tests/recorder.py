"""Programs of raw ops, run on TensorFlow's ops and on fastops', with the path of every call."""

import tensorflow as tf
from support import assert_same, path_since

import fastops


class Recorder:
    """`fastops.raw_ops`, writing down which paths the calls took: by op, in the order of calls."""

    def __init__(self):
        self.paths = {}

    def __getattr__(self, op_name):
        op = getattr(fastops.raw_ops, op_name)

        def call(**arguments):
            before = fastops.stats().ops.get(op.op_name)
            try:
                return op(**arguments)
            finally:
                self.paths.setdefault(op_name, []).append(path_since(before, op.op_name))

        return call


def settled(program, reference=tf.raw_ops):
    """Hold a program of raw ops against TensorFlow's, bit for bit.

    Returns what it returns on TensorFlow's ops, and the paths of the second run on fastops': that
    by which every kernel is prepared. The reference has TensorFlow's functions.
    """
    want = program(reference)
    for _ in range(2):
        ops = Recorder()
        assert_same(program(ops), want)
    return want, ops.paths


def distinct(paths):
    """Return the set of all paths that `settled` has seen, whichever op took them."""
    return {path for seen in paths.values() for path in seen}
