"""Calls functions with an empty Python stack, as the interpreter runs a program.

TensorFlow writes Python's stack into error messages, and `warnings`, `inspect` and debuggers show
it. Without the launcher's frames, the stack is the same as under ``python script.py``.

This module is loaded before TensorFlow, so it must not depend on TensorFlow's libraries.
"""

cdef extern from *:
    """
    // The newest frame of a thread, and its remaining and present recursion depth.
    // Read: CPython 3.10, 3.11, 3.12, 3.13, 3.14 (PyThreadState). Other versions keep the frames.
    #if PY_VERSION_HEX >= 0x030F0000
    #define FASTOPS_KEEPS_FRAMES
    #elif PY_VERSION_HEX >= 0x030D0000
    #define FASTOPS_FRAME(thread) ((thread)->current_frame)
    #elif PY_VERSION_HEX >= 0x030B0000
    #define FASTOPS_FRAME(thread) ((thread)->cframe->current_frame)
    #else
    #define FASTOPS_FRAME(thread) ((thread)->frame)
    #endif

    #if defined(FASTOPS_KEEPS_FRAMES)
    #elif PY_VERSION_HEX >= 0x030C0000
    #define FASTOPS_LEFT(thread) ((thread)->py_recursion_remaining)
    #define FASTOPS_DEPTH(thread) ((thread)->py_recursion_limit - (thread)->py_recursion_remaining)
    #elif PY_VERSION_HEX >= 0x030B0000
    #define FASTOPS_LEFT(thread) ((thread)->recursion_remaining)
    #define FASTOPS_DEPTH(thread) ((thread)->recursion_limit - (thread)->recursion_remaining)
    #endif

    // Calls `function`. If `arguments` is None, `function` is code, which is executed in `names`.
    static PyObject* fastops_at_bottom(PyObject* function, PyObject* names, PyObject* arguments) {
    #ifdef FASTOPS_KEEPS_FRAMES
      return arguments == Py_None ? PyEval_EvalCode(function, names, names)
                                  : PyObject_Call(function, arguments, nullptr);
    #else
      PyThreadState* thread = PyThreadState_Get();
      auto* const frame = FASTOPS_FRAME(thread);
      FASTOPS_FRAME(thread) = nullptr;
    #ifdef FASTOPS_LEFT
      const int depth = FASTOPS_DEPTH(thread);
      FASTOPS_LEFT(thread) += depth;
    #else
      const int depth = thread->recursion_depth;
      thread->recursion_depth = 0;
    #endif
      PyObject* result = arguments == Py_None ? PyEval_EvalCode(function, names, names)
                                              : PyObject_Call(function, arguments, nullptr);
    #ifdef FASTOPS_LEFT
      FASTOPS_LEFT(thread) -= depth;
    #else
      thread->recursion_depth += depth;
    #endif
      FASTOPS_FRAME(thread) = frame;
      return result;
    #endif
    }
    """
    object fastops_at_bottom(object function, object names, object arguments)

from types import CodeType


def execute(code, dict names not None):
    """Execute the code of a module, with no other frame on the stack."""
    if not isinstance(code, CodeType):  # the interpreter would crash
        raise SystemError(f"not code: {code!r}")
    fastops_at_bottom(code, names, None)


def call(function, *arguments):
    """Call a function, with no other frame on the stack."""
    return fastops_at_bottom(function, None, arguments)
