"""Optional values of datasets, which a step that Keras has compiled returns, without their scopes.

A tensor on the host is colocated with what runs on the host, and a name scope tells nobody
anything while no graph is built: `fastops._install.traced.Method` asks for these only then.
"""

import itertools

import tensorflow as tf
from tensorflow.python.data.util import nest, structure
from tensorflow.python.ops import gen_optional_ops

from fastops._plans.packing import nested

MOST_SPECS = 64
"""Structures that are remembered; beyond, the one that came first goes."""

_known: dict[int, tuple] = {}  # by the address of a structure: it, dtypes, shapes, packer


def has_value(original, optional):
    """Tell whether there is a value."""
    try:
        return gen_optional_ops.optional_has_value(optional._variant_tensor)
    except tf.errors.OpError:
        return original(optional)  # which names what fails


def get_value(original, optional):
    """Return the value in its structure."""
    spec = optional._element_spec
    known = _known.get(id(spec)) or _remember(spec)
    _, dtypes, shapes, pack = known
    if pack is None:
        return original(optional)
    try:
        found = gen_optional_ops.optional_get_value(optional._variant_tensor, dtypes, shapes)
    except tf.errors.OpError:
        return original(optional)
    return pack(found)


def _remember(spec):
    """Find out how values of a structure are made of tensors, if these need nothing else."""
    dtypes, shapes, pack = None, None, None
    if all(type(one) is tf.TensorSpec for one in nest.flatten(spec)):
        dtypes = structure.get_flat_tensor_types(spec)
        shapes = structure.get_flat_tensor_shapes(spec)
        try:
            pack = nested(spec, itertools.count(), tf.TensorSpec, (tuple,))
        except TypeError:
            pack = None
    while len(_known) >= MOST_SPECS:
        _known.pop(next(iter(_known)), None)
    known = _known[id(spec)] = spec, dtypes, shapes, pack
    return known


METHODS = {"has_value": has_value, "get_value": get_value}
"""By the name of a method of `tf.experimental.Optional`, what stands for it."""
