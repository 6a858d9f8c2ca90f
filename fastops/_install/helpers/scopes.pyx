# distutils: language = c++
"""Answers for entering and leaving name scopes.

The first comment line of each answer lists the parameters of the function.
"""

from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact

from fastops._core.declined cimport DECLINED
from fastops._install.answer cimport Answer, register
from fastops._situation cimport EAGERLY, missing

from tensorflow.python.eager import context as _tf_context
from tensorflow.python.framework.ops import name_scope_v2 as _name_scope


cdef class Restoration:
    """Restores the outer name scope: `name_scope_v2.__enter__` stores it for `__exit__`."""

    cdef object state  # the thread-local state of the context
    cdef object name   # the outer scope

    def __call__(self, *_):
        self.state.scope_name = self.name


cdef object _enter(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef Restoration restoration
    cdef str name, scope_name
    if n != 1 or keywords != NULL or type(<object>args[0]) is not _name_scope or missing(EAGERLY):
        return DECLINED
    scope = <object>args[0]
    context = _tf_context._context
    if context is None:
        return DECLINED
    state = context._thread_local_data
    outer = state.scope_name
    if not PyUnicode_CheckExact(scope._name) or not PyUnicode_CheckExact(outer):
        return DECLINED
    name = scope._name
    if not name or name[len(name) - 1] == "/":
        scope_name = name
    else:
        scope_name = f"{outer}{name}/"
    restoration = Restoration.__new__(Restoration)
    restoration.state = state
    restoration.name = outer
    state.scope_name = scope_name
    scope._exit_fns.append(restoration)
    return scope_name


cdef object _exit(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, type_arg, value_arg, traceback_arg
    cdef list pending
    if n != 4 or keywords != NULL or type(<object>args[0]) is not _name_scope:
        return DECLINED
    pending = (<object>args[0])._exit_fns
    if not pending or type(pending[len(pending) - 1]) is not Restoration:
        return DECLINED
    restoration = <Restoration>pending.pop()
    restoration.state.scope_name = restoration.name
    return False


register("helpers", "name_scope_v2.__enter__", _enter)
register("helpers", "name_scope_v2.__exit__", _exit)
