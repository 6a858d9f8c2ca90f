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
    made_by : SymbolicCall, optional
        The call that returns the symbol. None for a placeholder.
    index : int
        The index of the symbol among the tensors that the call returns.
    """

    def __init__(self, spec, made_by=None, index=0):
        self.spec = spec
        self.made_by = made_by
        self.index = index
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
        return SymbolicCall(getattr(tf.Tensor, name), (self, *args), {}).results

    operator.__name__ = name
    operator.__doc__ = f"As `tf.Tensor.{name}`."
    return operator


for _name in tf.Tensor.OVERLOADABLE_OPERATORS:
    setattr(Symbol, _name, _operator(_name))


class SymbolicCall:
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
            values = {id(symbol): _placeholder(symbol.spec) for symbol in symbols_in(self._args)}
            made = self.run(lambda symbol: values[id(symbol)])
        self.results = tf.nest.map_structure(self._symbol_of, made)
        flat = tf.nest.flatten(self.results)
        for index, result in enumerate(flat):
            if isinstance(result, Symbol):
                result.index = index

    def _symbol_of(self, value):
        if tf.is_tensor(value):
            return Symbol(tf.type_spec_from_value(value), self)
        return value

    def run(self, value_of):
        """Make the call, with the values of its symbols."""
        args, kwargs = tf.nest.map_structure(
            lambda value: value_of(value) if isinstance(value, Symbol) else value, self._args
        )
        return self._function(*args, **kwargs)


def _placeholder(spec):
    if isinstance(spec, tf.SparseTensorSpec):
        return tf.compat.v1.sparse_placeholder(spec.dtype, spec.shape)
    return tf.nest.map_structure(
        lambda leaf: tf.compat.v1.placeholder(leaf.dtype, leaf.shape), spec, expand_composites=True
    )


def symbols_in(structure):
    """Return the symbols in a structure."""
    return [value for value in tf.nest.flatten(structure) if isinstance(value, Symbol)]


class _Dispatcher(tf.__internal__.dispatch.GlobalOpDispatcher):
    def handle(self, op, args, kwargs):
        if symbols_in((args, kwargs)):
            return SymbolicCall(op, args, kwargs).results
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
        return calls[id(call)][symbol.index]

    return tf.nest.map_structure(
        lambda value: value_of(value) if isinstance(value, Symbol) else tf.convert_to_tensor(value),
        outputs,
    )
