"""Symbols: tensors without a value outside of graphs. Eager calls on placeholders return them.

TensorFlow passes calls with unknown arguments to registered dispatchers. The dispatcher of this
module notes the call, and traces it to find out which tensors it returns. Each of these is a symbol
again.
"""

import itertools

import tensorflow as tf

_numbers = itertools.count()


class Symbol:
    """A tensor without a value.

    Parameters
    ----------
    spec : tf.TypeSpec
        The shape and dtype.
    made_by : Call, optional
        The call that returns the symbol. None for a placeholder.
    place : int
        The index of the symbol among the tensors that the call returns.
    """

    def __init__(self, spec, made_by=None, place=0):
        self.spec = spec
        self.made_by = made_by
        self.place = place
        if made_by is None:
            self._is_backend_placeholder = True  # Keras recognizes placeholders by this
        self.name = getattr(spec, "name", None) or f"symbol_{next(_numbers)}"

    @property
    def shape(self):
        """tf.TensorShape: the sizes, as far as they are known."""
        return tf.TensorShape(self.spec.shape)

    @property
    def dtype(self):
        """tf.DType: the dtype."""
        return self.spec.dtype

    @property
    def _type_spec(self):
        return self.spec

    @property
    def op(self):
        """Raises TypeError: no node of a graph makes a symbol."""
        raise TypeError("a symbol has no op")

    def get_shape(self):
        """Return the sizes, as far as they are known."""
        return self.shape

    def set_shape(self, shape):
        """Merge a shape into the known one."""
        self.spec = tf.TensorSpec(self.shape.merge_with(shape), self.dtype)

    def __len__(self):
        raise TypeError("a symbol has no length: use its shape")

    def __bool__(self):
        raise TypeError("a symbol has no value, so Python cannot test it: use `tf.cond`")

    def __iter__(self):
        if self.shape.rank is None or self.shape[0] is None:
            raise TypeError("a symbol of unknown length cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self):
        return f"<Symbol {self.name}: shape={self.shape}, dtype={self.dtype.name}>"

    __hash__ = object.__hash__


def _operator(name):
    def operator(self, *args):
        return Call(getattr(tf.Tensor, name), (self, *args), {}).results

    operator.__name__ = name
    operator.__doc__ = f"As `tf.Tensor.{name}`."
    return operator


for _name in tf.Tensor.OVERLOADABLE_OPERATORS:
    setattr(Symbol, _name, _operator(_name))


class Call:
    """A call of a function with symbols among its arguments.

    Attributes
    ----------
    results : structure of Symbol
        The symbols that the call returns.
    """

    def __init__(self, function, args, kwargs):
        self._function = function
        self._args = args, kwargs
        graph = tf.__internal__.FuncGraph("fastops_symbols")
        with graph.as_default():
            values = {id(one): _placeholder(one.spec) for one in symbols_in(self._args)}
            made = self.run(lambda one: values[id(one)])
        self.results = tf.nest.map_structure(self._symbol_of, made)
        flat = tf.nest.flatten(self.results)
        for place, one in enumerate(flat):
            if isinstance(one, Symbol):
                one.place = place

    def _symbol_of(self, value):
        if tf.is_tensor(value):
            return Symbol(tf.type_spec_from_value(value), self)
        return value

    def run(self, value_of):
        """Make the call, with the values of its symbols."""
        args, kwargs = tf.nest.map_structure(
            lambda one: value_of(one) if isinstance(one, Symbol) else one, self._args
        )
        return self._function(*args, **kwargs)


def _placeholder(spec):
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.compat.v1.sparse_placeholder(spec.dtype, spec.shape)
    return tf.nest.map_structure(
        lambda one: tf.compat.v1.placeholder(one.dtype, one.shape), spec, expand_composites=True
    )


def symbols_in(structure):
    """Return the symbols in a structure."""
    return [one for one in tf.nest.flatten(structure) if isinstance(one, Symbol)]


class _Dispatcher(tf.__internal__.dispatch.GlobalOpDispatcher):
    def handle(self, op, args, kwargs):
        if symbols_in((args, kwargs)):
            return Call(op, args, kwargs).results
        return self.NOT_SUPPORTED


_Dispatcher().register()


def evaluate(outputs, known):
    """Return the values of symbols.

    Parameters
    ----------
    outputs : structure of Symbol
        The symbols to compute.
    known : dict of int to tensor
        The known values, by the identity of the symbol.
    """
    calls: dict = {}

    def value_of(symbol):
        if id(symbol) in known:
            return known[id(symbol)]
        call = symbol.made_by
        if call is None:
            raise ValueError(f"{symbol} is needed, but it is not an input of the function")
        if id(call) not in calls:
            calls[id(call)] = tf.nest.flatten(call.run(value_of))
        return calls[id(call)][symbol.place]

    return tf.nest.map_structure(
        lambda one: value_of(one) if isinstance(one, Symbol) else tf.convert_to_tensor(one), outputs
    )
