# distutils: language = c++
"""What Keras 3 asks in Python before it reaches an op, answered for plain arguments.

Is this a tensor, is one among these symbolic, what is the name of that dtype: the answers are the
ones of Keras's own functions, which are asked wherever an argument is not one of the classes known
here. The modules beside give them: `structures`, `dtypes` and `layers`.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

from fastops._cpp.python cimport PyVectorcall_NARGS
from fastops._install.replacement cimport Replacement, call_original, enable, live

from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable


PASS = object()
tf_variable_type = <PyTypeObject*>_ResourceVariable


def attach(keras):
    """Finds in Keras the classes that `kind_of` knows.

    Parameters
    ----------
    keras : module
        ``keras.src``.
    """
    global variable_type, symbolic_type
    variable_type = <PyTypeObject*>keras.backend.Variable
    symbolic_type = <PyTypeObject*>keras.backend.common.keras_tensor.KerasTensor


@cython.final
@cython.no_gc_clear
cdef class Helper(Replacement):
    """In the place of a function or method of Keras.

    Parameters
    ----------
    original : callable
        Keras's.
    name : str
        A key of `HELPERS` or `METHODS`, which say what stands in for it.
    """

    def __init__(self, original, name):
        super().__init__(original)
        self.answer = _find(name)
        self.vectorcall = _helper


cdef PyObject* _helper(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keywords) except NULL:
    cdef Helper self = <Helper>callable
    if live:
        answer = self.answer(self, args, PyVectorcall_NARGS(nargsf), keywords)
        if answer is not PASS:
            Py_INCREF(answer)
            return <PyObject*>answer
    return call_original(self, args, nargsf, keywords)


HELPERS = {
    "backend.common.global_state.get_global_attribute": "looks in the thread's state",
    "backend.common.dtypes.result_type": "remembers the answer for the same dtypes",
    "backend.common.keras_tensor.any_symbolic_tensors": "looks at classes",
    "backend.common.variables.standardize_dtype": "remembers the answer for the same dtype",
    "backend.tensorflow.core.is_tensor": "looks at classes",
    "layers.layer.is_backend_tensor_or_symbolic": "looks at classes",
    "tree.tree_api.flatten": "takes single values, and lists or tuples with no others in them",
    "tree.tree_api.is_nested": "looks at classes",
    "tree.tree_api.map_structure": "takes single values, lists or tuples with no others in them",
}
"""Functions by their names in ``keras.src``, and what their replacements do."""

METHODS = {
    "layers.layer.CallSpec.__init__": "binds tensors and plain values to the parameters",
    "layers.layer.Layer.__setattr__": "does nothing where an attribute has the same bool",
}
"""Likewise methods."""


cdef dict _answers = {}  # addresses, by name


cdef int register(str name, answer_t answer) except -1:
    """Gives an answer the name of the function that it stands in for."""
    if name not in HELPERS and name not in METHODS:
        raise ValueError(f"{name} is no helper")
    _answers[name] = <size_t>answer
    return 0


cdef answer_t _find(str name) except NULL:
    if name not in _answers:
        raise ValueError(f"there is no helper {name}")
    return <answer_t><size_t>_answers[name]


enable(Helper)
