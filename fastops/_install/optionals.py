"""Optional values of datasets (`tf.experimental.Optional`): Keras's steps return them.

In eager mode on the host, colocation and name scopes have no effect, so they are skipped.
`fastops._install.traced.PlainMethod` calls the functions here only in that case. An optional value
that is made outside of a graph needs no op: an `EagerOptional` keeps the value.
"""

import itertools

import tensorflow as tf
from tensorflow.python.data.ops import optional_ops
from tensorflow.python.data.util import nest, structure
from tensorflow.python.eager import record
from tensorflow.python.framework import ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_array_ops, gen_optional_ops

from fastops._plans.packing import nested
from fastops._situation import is_plain
from fastops._specialize.policy import MAX_OPTIONAL_SPECS

_known: dict[int, tuple] = {}  # by the id of a structure: the structure, dtypes, shapes, packer


def has_value(original, optional):
    """Tell whether an optional value has a value."""
    try:
        return gen_optional_ops.optional_has_value(optional._variant_tensor)
    except tf.errors.OpError:
        return original(optional)  # raises TensorFlow's own error


def get_value(original, optional):
    """Return the value, packed into its structure."""
    spec = optional._element_spec
    known = _known.get(id(spec)) or _remember(spec)
    _, dtypes, shapes, pack = known
    if pack is None:
        return original(optional)
    try:
        tensors = gen_optional_ops.optional_get_value(optional._variant_tensor, dtypes, shapes)
    except tf.errors.OpError:
        return original(optional)
    return pack(tensors)


def _remember(spec):
    """Find out how to pack tensors into a structure. The packer is None if only TensorFlow can."""
    dtypes, shapes, pack = None, None, None
    if all(type(leaf) is tf.TensorSpec for leaf in nest.flatten(spec)):
        dtypes = structure.get_flat_tensor_types(spec)
        shapes = structure.get_flat_tensor_shapes(spec)
        try:
            pack = nested(spec, itertools.count(), tf.TensorSpec, (tuple,))
        except TypeError:
            pack = None
    while len(_known) >= MAX_OPTIONAL_SPECS:
        _known.pop(next(iter(_known)), None)
    known = _known[id(spec)] = spec, dtypes, shapes, pack
    return known


_OPAQUE = frozenset({tf.resource, tf.variant})


class EagerOptional(optional_ops._OptionalImpl):
    """An optional value that keeps its value, and makes the variant tensor on first use.

    Parameters
    ----------
    value : nest of EagerTensor
        The value.
    """

    def __init__(self, value):
        self._given = value
        self._made = None

    @property
    def _variant_tensor(self):
        if self._made is None:
            with ops.init_scope(), record.stop_recording():
                flat = structure.to_tensor_list(self._element_spec, self._given)
                self._made = gen_optional_ops.optional_from_value(flat)
        return self._made

    @property
    def _element_spec(self):
        return structure.type_spec_from_value(self._given)

    def has_value(self, name=None):
        if name is None and is_plain():
            return tf.constant(True)
        return super().has_value(name)

    def get_value(self, name=None):
        if name is None and is_plain():
            return _copied(self._given)
        return super().get_value(name)


EagerOptional.__name__, EagerOptional.__qualname__ = ["_OptionalImpl"] * 2
EagerOptional.__module__ = optional_ops.__name__


def from_value(original, value):
    """Return an optional value that has this value."""
    given = _copied(value)
    return original(value) if given is None else EagerOptional(given)


def _copied(value):
    """Return a structure with copies of its tensors; None if it has values of other types."""
    kind = type(value)
    if kind is EagerTensor:
        return None if value.dtype in _OPAQUE else gen_array_ops.identity(value)
    if kind is dict and value and all(type(name) is str for name in value):
        copies = {name: _copied(item) for name, item in value.items()}
        return None if any(item is None for item in copies.values()) else copies
    if kind is tuple and value:
        copies = tuple([_copied(item) for item in value])
        return None if any(item is None for item in copies) else copies
    return None


METHODS = {"has_value": has_value, "get_value": get_value}
"""By name of a method of `tf.experimental.Optional`, the function that stands in for it."""
