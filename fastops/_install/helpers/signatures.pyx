# distutils: language = c++
"""Answers for methods of `inspect` that bind arguments to signatures.

Libraries on TensorFlow spend most of their time in them: decorators bind the arguments of each call
to the signature of the decorated function, once for each decorator. The first comment line of each
answer lists the parameters of the function.
"""

cimport cython
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

from fastops._core.declined cimport DECLINED
from fastops._install.answer cimport Answer, register

import inspect
from types import MappingProxyType


cdef enum:
    SIZE = 256  # limits the table for programs that make a new signature in each call

cdef type _Signature = inspect.Signature
cdef type _Parameter = inspect.Parameter
cdef type _BoundArguments = inspect.BoundArguments
cdef type _Mapping = MappingProxyType
cdef object _empty = inspect.Parameter.empty
cdef object _POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
cdef object _KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
cdef object _VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
cdef object _VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD
cdef object _bind_in_python = inspect.Signature._bind
cdef list _layouts = [None] * SIZE  # a hash table, by the identity of the parameters


@cython.final
cdef class Layout:
    """The parameters of a signature by kind, in order. Parameters of a signature never change."""

    cdef object parameters  # kept alive, so that no other object gets its identity
    cdef list positional, keyword_only
    cdef object starred, double_starred  # names of *args and **kwargs, or None


cdef Layout _laid_out(object parameters):
    """Return the layout of parameters.

    None if a parameter is positional-only, out of order, or of a subclass.
    """
    cdef Layout layout = Layout.__new__(Layout)
    layout.parameters = parameters
    layout.positional = []
    layout.keyword_only = []
    layout.starred = layout.double_starred = None
    if type(parameters) is not _Mapping:
        return None
    for name, parameter in parameters.items():
        if type(parameter) is not _Parameter or type(name) is not str or parameter._name != name:
            return None
        if layout.double_starred is not None:
            return None
        kind = parameter._kind
        if kind is _POSITIONAL and layout.starred is None and not layout.keyword_only:
            layout.positional.append(parameter)
        elif kind is _VAR_POSITIONAL and layout.starred is None and not layout.keyword_only:
            layout.starred = name
        elif kind is _KEYWORD_ONLY:
            layout.keyword_only.append(parameter)
        elif kind is _VAR_KEYWORD:
            layout.double_starred = name
        else:
            return None
    return layout


cdef Layout _layout_of(PyObject* signature):
    cdef Layout layout
    cdef size_t slot
    if type(<object>signature) is not _Signature:
        return None
    parameters = (<object>signature)._parameters
    slot = (<size_t><PyObject*>parameters >> 4) % SIZE
    stored = <object>PyList_GET_ITEM(_layouts, slot)
    if stored is not None and (<Layout>stored).parameters is parameters:
        return <Layout>stored
    layout = _laid_out(parameters)
    if layout is not None:
        _layouts[slot] = layout
    return layout


cdef Layout _layout_of_bound(PyObject* bound):
    """Return the layout for bound arguments if their container is a dict; None otherwise."""
    if type(<object>bound) is not _BoundArguments:
        return None
    if not PyDict_CheckExact((<object>bound).arguments):
        return None
    signature = (<object>bound)._signature
    return _layout_of(<PyObject*>signature)


cdef Py_ssize_t _keyword_at(PyObject* keywords, object name) except -2:
    """Return the index of a name in the keywords; -1 if it is not there."""
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(<object>keywords)):
        if PyTuple_GET_ITEM(<object>keywords, i) == <PyObject*>name:
            return i
    for i in range(PyTuple_GET_SIZE(<object>keywords)):
        if <object>PyTuple_GET_ITEM(<object>keywords, i) == name:
            return i
    return -1


cdef bint _bind_keywords(dict arguments, list parameters, Py_ssize_t first,
                         PyObject* const* values, PyObject* keywords,
                         Py_ssize_t* used) except -1:
    """Bind parameters from index `first` on by keyword. Return False if an argument is missing."""
    cdef Py_ssize_t i, at
    for i in range(first, PyList_GET_SIZE(parameters)):
        parameter = <object>PyList_GET_ITEM(parameters, i)
        name = parameter._name
        at = -1 if keywords == NULL else _keyword_at(keywords, name)
        if at >= 0:
            arguments[name] = <object>values[at]
            used[0] += 1
        elif parameter._default is _empty:
            return False
    return True


cdef object _bind(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self, /, *args, **kwargs
    cdef Layout layout
    cdef dict arguments = {}, others
    cdef Py_ssize_t i, given = n - 1, bound, used = 0, named = 0
    if n < 1 or _Signature._bind is not _bind_in_python:
        return DECLINED
    layout = _layout_of(args[0])
    if layout is None:
        return DECLINED
    if keywords != NULL:
        named = PyTuple_GET_SIZE(<object>keywords)
    bound = min(given, PyList_GET_SIZE(layout.positional))
    for i in range(bound):
        name = (<object>PyList_GET_ITEM(layout.positional, i))._name
        if named and _keyword_at(keywords, name) >= 0:
            return DECLINED
        arguments[name] = <object>args[1 + i]
    if given > bound:
        if layout.starred is None:
            return DECLINED
        arguments[layout.starred] = tuple([<object>args[1 + i] for i in range(bound, given)])
    if not _bind_keywords(arguments, layout.positional, bound, args + n, keywords, &used):
        return DECLINED
    if not _bind_keywords(arguments, layout.keyword_only, 0, args + n, keywords, &used):
        return DECLINED
    if used < named:
        if layout.double_starred is None:
            return DECLINED
        others = {}
        for i in range(named):
            name = <object>PyTuple_GET_ITEM(<object>keywords, i)
            # A keyword may have the same name as *args: it then belongs to **kwargs.
            if name not in arguments or name == layout.starred:
                others[name] = <object>args[n + i]
        arguments[layout.double_starred] = others
    return _BoundArguments(<object>args[0], arguments)


cdef object _apply_defaults(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef Layout layout
    cdef dict arguments, filled = {}
    cdef PyObject* argument
    if n != 1 or keywords != NULL:
        return DECLINED
    layout = _layout_of_bound(args[0])
    if layout is None:
        return DECLINED
    arguments = (<object>args[0]).arguments
    for parameter in layout.parameters.values():
        name = parameter._name
        argument = PyDict_GetItem(arguments, name)
        if argument != NULL:
            filled[name] = <object>argument
        elif parameter._default is not _empty:
            filled[name] = parameter._default
        elif name is layout.starred:
            filled[name] = ()
        elif name is layout.double_starred:
            filled[name] = {}
    (<object>args[0]).arguments = filled
    return None


cdef object _positional(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef Layout layout
    cdef dict arguments
    cdef list values = []
    cdef PyObject* argument
    if n != 1 or keywords != NULL:
        return DECLINED
    layout = _layout_of_bound(args[0])
    if layout is None:
        return DECLINED
    arguments = (<object>args[0]).arguments
    for parameter in layout.positional:
        argument = PyDict_GetItem(arguments, parameter._name)
        if argument == NULL:  # this argument and later ones are passed by keyword
            return tuple(values)
        values.append(<object>argument)
    if layout.starred is not None:
        argument = PyDict_GetItem(arguments, layout.starred)
        if argument != NULL:
            if not PyTuple_CheckExact(<object>argument):
                return DECLINED
            values.extend(<tuple><object>argument)
    return tuple(values)


cdef object _by_keyword(Answer self, PyObject* const* args, Py_ssize_t n, PyObject* keywords):
    # self
    cdef Layout layout
    cdef dict arguments, values = {}
    cdef PyObject* argument
    if n != 1 or keywords != NULL:
        return DECLINED
    layout = _layout_of_bound(args[0])
    if layout is None:
        return DECLINED
    arguments = (<object>args[0]).arguments
    for parameter in layout.positional:
        if PyDict_GetItem(arguments, parameter._name) == NULL:
            return DECLINED
    if layout.starred is not None and PyDict_GetItem(arguments, layout.starred) == NULL:
        return DECLINED
    for parameter in layout.keyword_only:
        argument = PyDict_GetItem(arguments, parameter._name)
        if argument != NULL:
            values[parameter._name] = <object>argument
    if layout.double_starred is not None:
        argument = PyDict_GetItem(arguments, layout.double_starred)
        if argument != NULL:
            if not PyDict_CheckExact(<object>argument):
                return DECLINED
            values.update(<dict><object>argument)
    return values


register("helpers", "Signature.bind", _bind)
register("helpers", "BoundArguments.apply_defaults", _apply_defaults)
register("helpers", "BoundArguments.args", _positional)
register("helpers", "BoundArguments.kwargs", _by_keyword)
