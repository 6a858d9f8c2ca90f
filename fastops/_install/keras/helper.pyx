# distutils: language = c++
"""Stand-ins for functions of Keras 3 that inspect values before an op runs.

Examples: whether a value is a tensor, whether a symbolic tensor is among some values, or the name
of a dtype. For arguments of the classes known here, a stand-in returns the same answer as Keras's
function. All other arguments fall back to Keras's function. The modules `structures`, `dtypes` and
`layers` define the answers.
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
    """Look up the classes of Keras that `kind_of` uses.

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
    """Stand-in for a function or method of Keras.

    Parameters
    ----------
    original : callable
        Keras's function or method.
    name : str
        A key of `HELPERS` or `METHODS`, under which the answer is registered.
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
"""By name of a function in ``keras.src``, a description of its replacement."""

METHODS = {
    "layers.layer.CallSpec.__init__": "binds tensors and plain values to the parameters",
    "layers.layer.Layer.__setattr__": "does nothing where an attribute has the same bool",
}
"""By name of a method in ``keras.src``, a description of its replacement."""


cdef dict _answers = {}  # by name, the address of the function that answers


cdef int register(str name, answer_t answer) except -1:
    """Register an answer under the name of the function that it stands in for."""
    if name not in HELPERS and name not in METHODS:
        raise ValueError(f"{name} is no helper")
    _answers[name] = <size_t>answer
    return 0


cdef answer_t _find(str name) except NULL:
    if name not in _answers:
        raise ValueError(f"there is no helper {name}")
    return <answer_t><size_t>_answers[name]


enable(Helper)
