"""Run programs of raw ops on TensorFlow's and fastops' ops, and record the path of every call."""

import tensorflow as tf
from support import assert_same, path_since

import fastops


class Recorder:
    """`fastops.raw_ops` with a record of the paths of calls, by op, in the order of calls."""

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
    """Compare a program of raw ops on fastops and on TensorFlow, bit for bit.

    Returns the results with TensorFlow's ops, and the paths of the second run with fastops, in
    which every kernel is prepared. The reference uses TensorFlow's functions.
    """
    want = program(reference)
    for _ in range(2):
        ops = Recorder()
        assert_same(program(ops), want)
    return want, ops.paths


def distinct(paths):
    """Return the set of all paths in the result of `settled`, of all ops."""
    return {path for seen in paths.values() for path in seen}
