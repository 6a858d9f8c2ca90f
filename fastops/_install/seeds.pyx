# distutils: language = c++
"""Draws by seeds while fastops is installed: see `fastops._core.draws`.

The stand-in for the dispatch call sees all draws of TensorFlow's kernels. The stand-in here sees
when TensorFlow drops its kernels, as `tf.random.set_seed` has it do: each sequence begins again.
"""

from cpython.object cimport PyObject
from cython.operator cimport dereference as deref

from fastops._core cimport draws
from fastops._dispatch cimport runtime
from fastops._install.replacement cimport Replacement, call_original, live, replacing

from tensorflow.python import pywrap_tfe as _pywrap_tfe
from tensorflow.python.eager import context as _tf_context

from fastops._core import draws as _draws
from fastops._plans import runtime_function as _runtime_function


cdef tuple _WATCHED = ("TFE_Py_FastPathExecute", "TFE_ContextClearCaches")


def clear_caches(original):
    """Return the stand-in for ``TFE_ContextClearCaches``."""
    return replacing(original, _clear_caches)


cdef PyObject* _clear_caches(PyObject* callable, PyObject* const* args, size_t nargsf,
                             PyObject* keywords) except NULL:
    cdef PyObject* result = call_original(<Replacement>callable, args, nargsf, keywords)
    if live:
        _draws.forget()
    return result


def begin():
    """Begin to draw here, if the stand-ins that watch TensorFlow's kernels are in place."""
    context = _tf_context._context
    try:
        known = context is None or context._context_handle is None
    except Exception:  # not a context as TensorFlow's are
        return
    if all([isinstance(vars(_pywrap_tfe).get(name), Replacement) for name in _WATCHED]):
        _draws.begin(known)
        _runtime_function.enter()


def end():
    """Leave all draws to TensorFlow again."""
    try:
        _runtime_function.leave()
        if draws.num_pairs():
            draws.settle(deref(runtime()))
    finally:
        _draws.stop()
