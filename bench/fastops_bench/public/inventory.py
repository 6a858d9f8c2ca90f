"""Find the public functions and methods of the running TensorFlow."""

import inspect
from types import ModuleType

import tensorflow as tf

ELSEWHERE = {
    "tf.compat": "the API of TensorFlow 1",
    "tf.keras": "Keras, which `bench_install.py` measures",
    "tf.initializers": "Keras",
    "tf.losses": "Keras",
    "tf.metrics": "Keras",
    "tf.optimizers": "Keras",
    "tf.raw_ops": "the ops themselves, which `bench_ladder.py` measures",
    "tf.dtensor": "no public name of its own: what is public is in `tf.experimental.dtensor`",
    "tf.security": "no public name of its own",
    "tf.tools": "no public name of its own",
}
"""Modules that are left out, with the reason."""

CLASSES = {
    "tf.Tensor": type(tf.constant(0)),
    "tf.Variable": type(tf.Variable(0)),
    "tf.IndexedSlices": tf.IndexedSlices,
    "tf.SparseTensor": tf.SparseTensor,
    "tf.RaggedTensor": tf.RaggedTensor,
    "tf.TensorArray": tf.TensorArray,
    "tf.TensorShape": tf.TensorShape,
    "tf.GradientTape": tf.GradientTape,
    "tf.autodiff.ForwardAccumulator": tf.autodiff.ForwardAccumulator,
    "tf.random.Generator": tf.random.Generator,
    "tf.lookup.StaticHashTable": tf.lookup.StaticHashTable,
    "tf.lookup.StaticVocabularyTable": tf.lookup.StaticVocabularyTable,
    "tf.lookup.experimental.DenseHashTable": tf.lookup.experimental.DenseHashTable,
    "tf.lookup.experimental.MutableHashTable": tf.lookup.experimental.MutableHashTable,
    "tf.queue.FIFOQueue": tf.queue.FIFOQueue,
}
"""Classes whose methods eager programs call in loops."""


def functions():
    """Return the public names of each callable that is not a class, as a list of lists of names."""
    return list(_names(lambda value: not inspect.isclass(value)))


def classes():
    """Return the public names of each class."""
    return list(_names(inspect.isclass))


def _names(wanted):
    found = {}
    for name, value in sorted(_walk(tf, "tf", set())):
        if wanted(value):
            found.setdefault(id(value), []).append(name)
    for names in found.values():
        yield sorted(names, key=lambda name: (name.count("."), name))


def _walk(module, name, seen):
    """Yield the name and the value of each public callable below a module."""
    if id(module) in seen:
        return
    seen.add(id(module))
    for key in dir(module):
        full = f"{name}.{key}"
        if key.startswith("_") or full in ELSEWHERE:
            continue
        value = getattr(module, key)
        if isinstance(value, ModuleType):
            yield from _walk(value, full, seen)
        elif callable(value):
            yield full, value


def methods():
    """Return the names of the methods of `CLASSES`, including those of operators."""
    return [
        f"{name}.{key}"
        for name, cls in CLASSES.items()
        for key in dir(cls)
        if (key.startswith("__") or not key.startswith("_")) and _is_its_own(cls, key)
    ]


def _is_its_own(cls, key):
    """Tell whether a value is a method that not every Python object has."""
    method = getattr(cls, key, None)
    return callable(method) and method is not getattr(object, key, None)
