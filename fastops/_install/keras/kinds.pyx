# distutils: language = c++
"""The kinds of values that answers for Keras's functions distinguish.

`structures` asks for the kind of each value. A value of an unknown kind is left to
Keras's function.
"""

from cpython.object cimport PyTypeObject

from tensorflow.python.ops.resource_variable_ops import ResourceVariable as _ResourceVariable


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
